"""Longest paths through a graph: the quantities that priorities, bounds and features are made of."""

import numpy as np

from lope.graphs.graph import Floats, Graph


def tails(graph: Graph, costs: Floats | None = None) -> Floats:
    """[n] cost of the most expensive path from each node to an end, the node itself included (default: durations)."""
    values = graph.durations if costs is None else costs
    found = values.tolist()
    for node in graph.topological_order[::-1].tolist():
        found[node] += max((found[other] for other in graph.successor_lists[node]), default=0.0)
    return np.array(found, dtype=np.float64)


def heads(graph: Graph, costs: Floats | None = None) -> Floats:
    """[n] cost of the most expensive path that ends where each node begins, the node excluded (default: durations)."""
    values = (graph.durations if costs is None else costs).tolist()
    found = [0.0] * graph.num_nodes
    for node in graph.topological_order.tolist():
        found[node] = max((found[other] + values[other] for other in graph.predecessor_lists[node]), default=0.0)
    return np.array(found, dtype=np.float64)


def operations_left(graph: Graph) -> Floats:
    """[n] number of nodes on the longest path (by duration) from each node to an end; ties: the larger number."""
    durations, counts = tails(graph).tolist(), [0.0] * graph.num_nodes
    for node in graph.topological_order[::-1].tolist():
        best = max(((durations[other], counts[other]) for other in graph.successor_lists[node]), default=(0.0, 0.0))
        counts[node] = best[1] + 1.0
    return np.array(counts)
