import numpy as np
import pytest

from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph
from lope.graphs.memory import memory_timeline, peak_lower_bound, peak_memory


def steps(order: str) -> list[int]:
    return ["ABCDEFG".index(letter) for letter in order]


def test_xla_six_against_five(xla_graph, least_peak):
    # openxla/xla hlo_memory_scheduler.cc: 6 where B is alive while F runs, and an optimum of 5, held when F runs.
    assert peak_memory(xla_graph, steps("ADEBFCG")) == 6
    best = memory_timeline(xla_graph, steps("ABCDEFG"))
    assert best.peak == 5
    assert xla_graph.names[best.peak_step] == "F"
    assert least_peak(xla_graph) == 5


def frees_first(graph: Graph, order: list[int]) -> int:
    """A wrong evaluator: what a node uses last is freed before its result is allocated."""
    line = memory_timeline(graph, order)
    freed = np.concatenate([[0], line.after[:-1]]) + graph.output_bytes[order] - line.after
    return int((line.during - freed).max())


def only_after(graph: Graph, order: list[int]) -> int:
    """A wrong evaluator: looks only between the steps."""
    return int(memory_timeline(graph, order).after.max())


def never_frees(graph: Graph, order: list[int]) -> int:
    """A wrong evaluator."""
    return int(graph.output_bytes.sum())


@pytest.mark.parametrize("wrong", [frees_first, only_after, never_frees])
def test_wrong_evaluators_disagree_on_the_xla_graph(xla_graph, wrong):
    assert (wrong(xla_graph, steps("ADEBFCG")), wrong(xla_graph, steps("ABCDEFG"))) != (6, 5)


def test_a_chain_by_hand():
    # Sizes 4, 6, 1 and 3 bytes of scratch at the middle node; the last result is kept.
    graph = Graph.build([(0, 1), (1, 2)], output_bytes=[4, 6, 1], scratch_bytes=[0, 3, 0])
    line = memory_timeline(graph, [0, 1, 2])
    assert line.during.tolist() == [4, 13, 7]
    assert line.after.tolist() == [4, 6, 1]
    assert (line.peak, line.peak_step) == (13, 1)


def test_outputs_stay_to_the_end_and_the_rest_does_not():
    sizes = {"num_nodes": 3, "output_bytes": [5, 7, 1]}
    assert memory_timeline(Graph.build([], **sizes), [0, 1, 2]).after.tolist() == [5, 12, 13]
    loose = Graph.build([], kept=[False, True, False], **sizes)
    assert memory_timeline(loose, [0, 1, 2]).after.tolist() == [0, 7, 7]
    inner = Graph.build([(0, 1)], kept=[True, False, False], **sizes)
    assert memory_timeline(inner, [0, 1, 2]).after.tolist() == [5, 5, 5]


def test_an_order_edge_keeps_nothing_alive():
    graph = Graph.build([], order_edges=[(0, 1)], output_bytes=[5, 1], kept=[False, True])
    assert memory_timeline(graph, [0, 1]).during.tolist() == [5, 1]
    with pytest.raises(GraphError, match="has to come first"):
        memory_timeline(graph, [1, 0])


def test_the_evaluator_is_the_words(small_graphs, simulated):
    rng = np.random.default_rng(1)
    for graph in small_graphs:
        ranks = rng.permutation(graph.num_nodes)
        order: list[int] = []
        while len(order) < graph.num_nodes:
            ready = [
                v
                for v in range(graph.num_nodes)
                if v not in order and set(graph.predecessors(v).tolist()) <= set(order)
            ]
            order.append(min(ready, key=lambda node: ranks[node]))
        assert memory_timeline(graph, order).during.tolist() == simulated(graph, order)


def test_no_order_is_below_the_bound(small_graphs, least_peak):
    for graph in small_graphs:
        assert peak_lower_bound(graph) <= least_peak(graph)


def test_an_empty_graph_holds_nothing():
    empty = Graph.build([], num_nodes=0)
    assert (peak_memory(empty, []), peak_lower_bound(empty)) == (0, 0)


def test_a_hundred_thousand_nodes_by_closed_form():
    # A chain of equal results holds two at a time.
    n = 100_000
    graph = Graph.build(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), num_nodes=n, output_bytes=np.full(n, 3))
    assert peak_memory(graph, np.arange(n)) == 6
