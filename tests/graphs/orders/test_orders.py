"""What every order rule of the table keeps, and what the single rules are known to do."""

import dataclasses
import itertools

import numpy as np
import pytest

from lope.core.errors import LopeError
from lope.graphs import ORDERS
from lope.graphs.errors import GraphError
from lope.graphs.generators.layered import layered_graph
from lope.graphs.graph import Graph
from lope.graphs.memory import peak_lower_bound, peak_memory
from lope.graphs.orders.best_of import HEURISTICS, lowest
from lope.graphs.orders.by_priority import order_by_priority
from lope.graphs.orders.frontier import Frontier

QUICK = ["as_given", "bfs", "dfs", "xla_list", "lpmf", "greedy", "beam"]
SEARCHES = ["exact", "cp_sat", "best", "beam:width=4096"]


@pytest.mark.parametrize("name", list(ORDERS))
def test_every_rule_gives_an_order_and_the_same_one_again(name, small_graphs):
    rule = ORDERS.make(name)
    for graph in [*small_graphs[::24], Graph.build([], num_nodes=0)]:
        order = graph.check_order(rule.order(graph))
        assert rule.order(graph).tolist() == order.tolist()
        assert peak_memory(graph, order) >= peak_lower_bound(graph)


@pytest.mark.parametrize("name", list(ORDERS))
def test_every_rule_is_frozen_settings(name):
    part = ORDERS.part(name)
    assert part.__dataclass_params__.frozen
    for field in dataclasses.fields(part):
        if field.name in ("seconds", "width", "states", "workers"):
            with pytest.raises(LopeError):
                ORDERS.make(f"{name}:{field.name}=-1")


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_find_the_least_peak_of_all_orders(name, small_graphs, least_peak):
    rule = ORDERS.make(name)
    for graph in small_graphs if name != "cp_sat" else small_graphs[::5]:
        assert peak_memory(graph, rule.order(graph)) == least_peak(graph), graph.edges


@pytest.mark.parametrize("name", QUICK)
def test_simple_rules_do_not(name, small_graphs, least_peak):
    # Were this to fail, the test above would tell nothing about the searches.
    if name != "beam":
        assert any(peak_memory(g, ORDERS.make(name).order(g)) > least_peak(g) for g in small_graphs)


def test_as_given_is_the_file_order_where_that_runs():
    assert ORDERS.make("as_given").order(Graph.build([(0, 2)], num_nodes=4)).tolist() == [0, 1, 2, 3]
    assert ORDERS.make("as_given").order(Graph.build([(2, 0)], num_nodes=4)).tolist() == [1, 2, 0, 3]


def test_xla_list_gives_the_sequence_that_xla_prints(xla_graph):
    # "A D E F B C G"; D and E are alike.
    order = "".join(xla_graph.names[node] for node in ORDERS.make("xla_list").order(xla_graph))
    assert order in ("ADEFBCG", "AEDFBCG")


def test_breadth_first_is_first_in_first_out():
    #   0 -> 2 -> 4, 1 -> 3 -> 5: the two chains in step.
    graph = Graph.build([(0, 2), (2, 4), (1, 3), (3, 5)], num_nodes=6)
    assert ORDERS.make("bfs").order(graph).tolist() == [0, 1, 2, 3, 4, 5]


def test_depth_first_finishes_a_chain_before_it_starts_another():
    graph = Graph.build([(0, 2), (2, 4), (1, 3), (3, 5)], output_bytes=[9, 1, 9, 1, 9, 1])
    assert ORDERS.make("dfs").order(graph).tolist() == [1, 3, 5, 0, 2, 4]


def lpmf_by_scan(graph: Graph) -> list[int]:
    """inductor's key, (size if size > peak - live else 0, size - freed, number), over all ready nodes."""
    frontier = Frontier(graph)
    peak = int(graph.output_bytes[graph.kept].sum())
    order = []
    while frontier.ready:
        gap = peak - frontier.live
        needs = frontier.needs
        node = min(frontier.ready, key=lambda v: (needs[v] if needs[v] > gap else 0, frontier.net(v), v))
        peak = max(peak, frontier.live + needs[node])
        frontier.run(node)
        order.append(node)
    return order


def test_two_heaps_choose_what_inductors_key_chooses(small_graphs):
    graphs = [*small_graphs, *(layered_graph(np.random.default_rng(seed), 150) for seed in range(4))]
    for graph in graphs:
        assert ORDERS.make("lpmf").order(graph).tolist() == lpmf_by_scan(graph)


def test_greedy_takes_what_needs_least_now(small_graphs):
    for graph in small_graphs:
        frontier = Frontier(graph)
        for node in ORDERS.make("greedy").order(graph).tolist():
            assert frontier.needs[node] == min(frontier.needs[other] for other in frontier.ready)
            frontier.run(node)


def test_priorities_decide_among_ready_nodes():
    graph = Graph.build([(0, 3)], num_nodes=4)
    assert order_by_priority(graph, [0, 2, 1, 9]).tolist() == [1, 2, 0, 3]
    for order in itertools.permutations(range(4)):
        if order.index(0) < order.index(3):
            assert order_by_priority(graph, -np.argsort(order)).tolist() == list(order)


@pytest.mark.parametrize("priorities", [[1.0], [1.0, float("nan")], [[1.0, 2.0]]])
def test_priorities_must_be_one_number_per_node(priorities):
    with pytest.raises(GraphError, match="priorities"):
        order_by_priority(Graph.build([], num_nodes=2), priorities)


def test_best_is_never_worse_than_any_heuristic():
    for seed in range(3):
        graph = layered_graph(np.random.default_rng(seed), 120)
        best = peak_memory(graph, ORDERS.make("best").order(graph))
        assert best <= min(peak_memory(graph, rule.order(graph)) for rule in HEURISTICS)


def test_of_equal_peaks_the_first_order_stays():
    graph = Graph.build([], output_bytes=[1, 1])
    assert lowest(graph, [np.array([1, 0]), np.array([0, 1])]).tolist() == [1, 0]
