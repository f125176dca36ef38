import itertools
import subprocess
import sys

import networkx
import numpy as np
import pytest

from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph


def test_adjacency_is_that_of_networkx(small_graphs):
    for graph in small_graphs:
        drawn = networkx.DiGraph(graph.edges.tolist())
        drawn.add_nodes_from(range(graph.num_nodes))
        for node in range(graph.num_nodes):
            assert graph.successors(node).tolist() == sorted(drawn.successors(node)) == graph.successor_lists[node]
            assert (
                graph.predecessors(node).tolist() == sorted(drawn.predecessors(node)) == graph.predecessor_lists[node]
            )
        assert graph.out_degrees.tolist() == [drawn.out_degree(node) for node in range(graph.num_nodes)]
        assert graph.in_degrees.tolist() == [drawn.in_degree(node) for node in range(graph.num_nodes)]


def test_the_topological_order_runs(small_graphs):
    for graph in small_graphs:
        position = {node: step for step, node in enumerate(graph.topological_order.tolist())}
        assert sorted(position) == list(range(graph.num_nodes))
        assert all(position[first] < position[then] for first, then in graph.edges.tolist())


@pytest.mark.parametrize(
    ("edges", "loop"),
    [
        ([(0, 0)], {"a"}),
        ([(0, 1), (1, 2), (2, 1), (2, 3)], {"b", "c"}),
        ([(3, 0), (0, 1), (1, 3), (1, 2)], {"a", "b", "d"}),
    ],
)
def test_a_cycle_is_named(edges, loop):
    with pytest.raises(GraphError, match="has a cycle: ") as caught:
        Graph.build(edges, names="abcd")
    named = str(caught.value).split("cycle: ")[1].split(" -> ")
    assert named[0] == named[-1]
    assert set(named) == loop
    pairs = {("abcd"[first], "abcd"[then]) for first, then in edges}
    assert all(pair in pairs for pair in itertools.pairwise(named))


def test_a_long_cycle_is_shortened():
    with pytest.raises(GraphError, match=r"\(\d+ more\)"):
        Graph.build([(v, (v + 1) % 1000) for v in range(1000)], num_nodes=1000)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"edges": [(0, 2)]}, "does not exist"),
        ({"edges": [(-1, 0)]}, "does not exist"),
        ({"edges": [(0, 1, 2)]}, "pairs of node numbers"),
        ({"edges": [("a", "b")]}, "pairs of node numbers"),
        ({"output_bytes": [1, -2]}, "output_bytes of node 1"),
        ({"output_bytes": [1, 2.5]}, "whole number"),
        ({"scratch_bytes": [1]}, "2 nodes"),
        ({"durations": [1, float("nan")]}, "durations of node 1"),
        ({"durations": [1, float("inf")]}, "durations of node 1"),
        ({"durations": [1, None]}, "durations of node 1"),
        ({"resources": ["1", "2"]}, "must be numbers"),
        ({"resources": [1, 2**70]}, "resources of node 1"),
        ({"names": ["a", "a"]}, "two nodes are called 'a'"),
        ({"names": ["a"]}, "1 names for 2 nodes"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, said):
    with pytest.raises(GraphError, match=said) as caught:
        Graph.build(**({"edges": [], "num_nodes": 2} | arguments))
    assert "\n" not in str(caught.value)


def test_a_graph_needs_a_size():
    with pytest.raises(GraphError, match="num_nodes"):
        Graph.build([])


def test_empty_and_disconnected_graphs_are_graphs():
    assert Graph.build([], num_nodes=0).topological_order.tolist() == []
    assert Graph.build([(0, 1)], num_nodes=4).topological_order.tolist() == [0, 2, 3, 1]


def test_parallel_edges_count_once_and_a_use_wins_over_an_order():
    graph = Graph.build([(0, 1), (0, 1)], order_edges=[(0, 1), (1, 2)], num_nodes=3)
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.carries.tolist() == [True, False]
    assert graph.use_edges.tolist() == [[0, 1]]


def test_arrays_are_read_only():
    graph = Graph.build([(0, 1)], num_nodes=2)
    with pytest.raises(ValueError, match="read-only"):
        graph.output_bytes[0] = 7


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [2, 1, 0], [0, 1, 2, 3]])
def test_what_is_no_order_is_refused(order):
    with pytest.raises(GraphError):
        Graph.build([(0, 1), (1, 2)], num_nodes=3).check_order(order)


def test_renumbering_keeps_the_graph(small_graphs):
    for graph in small_graphs:
        order = graph.topological_order
        twin = graph.renumbered(order)
        assert (twin.edges[:, 0] < twin.edges[:, 1]).all()
        pairs = {(graph.names[first], graph.names[then]) for first, then in graph.use_edges.tolist()}
        assert {(twin.names[first], twin.names[then]) for first, then in twin.use_edges.tolist()} == pairs
        assert twin.output_bytes.tolist() == graph.output_bytes[order].tolist()
        assert twin.kept.tolist() == graph.kept[order].tolist()


def test_a_hundred_thousand_nodes():
    rng = np.random.default_rng(0)
    pairs = np.sort(rng.integers(0, 100_000, (300_000, 2)), axis=1)
    graph = Graph.build(pairs[pairs[:, 0] < pairs[:, 1]], num_nodes=100_000)
    assert graph.num_nodes == 100_000
    assert graph.check_order(graph.topological_order) is graph.topological_order


def test_importing_the_room_loads_nothing_heavy():
    heavy = ("onnx", "ortools", "torch", "matplotlib", "networkx", "scipy")
    code = f"import sys, lope.graphs; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
