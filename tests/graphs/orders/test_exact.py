import numpy as np
import pytest

from lope.graphs.errors import GraphError
from lope.graphs.generators.layered import layered_graph
from lope.graphs.graph import Graph
from lope.graphs.memory import peak_lower_bound, peak_memory
from lope.graphs.orders.cp_sat import CpSatOrder
from lope.graphs.orders.exact import ExactOrder


def test_it_gives_up_with_one_clear_line():
    graph = layered_graph(np.random.default_rng(0), 100)
    with pytest.raises(GraphError, match="no order is proven best within 50 sets"):
        ExactOrder(states=50).order(graph)


def test_two_exact_methods_agree_on_graphs_too_large_for_brute_force():
    for seed in range(3):
        graph = layered_graph(np.random.default_rng(seed), 22)
        solved = CpSatOrder(seconds=60).solve(graph)
        assert solved.proven == solved.peak == peak_memory(graph, ExactOrder().order(graph))


def test_cp_sat_proves_no_more_than_is_true(small_graphs, least_peak):
    for graph in small_graphs[::8]:
        solved = CpSatOrder(seconds=20).solve(graph)
        assert solved.proven <= least_peak(graph) <= solved.peak
        assert solved.peak == peak_memory(graph, solved.order)


def test_cp_sat_keeps_the_hint_when_there_is_no_time():
    graph = layered_graph(np.random.default_rng(0), 60)
    solved = CpSatOrder(seconds=1e-3).solve(graph)
    assert peak_lower_bound(graph) <= solved.proven <= solved.peak == peak_memory(graph, solved.order)


def test_two_trees_by_closed_form():
    # Two chains 9 -> 1 into a sink: run one to its end first, 1 + 9 + 1 held at most; side by side it is 9 + 9.
    graph = Graph.build([(0, 1), (1, 4), (2, 3), (3, 4)], output_bytes=[9, 1, 9, 1, 0])
    assert peak_memory(graph, ExactOrder().order(graph)) == 11
    assert peak_memory(graph, [0, 2, 1, 3, 4]) == 19
