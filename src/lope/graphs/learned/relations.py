"""The seven attention graphs of Topoformer (Gagrani et al. 2022, arXiv 2207.05899, section 3.2).

1 transitive reduction, 2 its reverse, 3 the other edges of the DAG, 4 their reverse, 5 transitive closure without the
DAG, 6 its reverse, 7 pairs of which neither reaches the other. They split all ordered pairs of different nodes.
"""

import numpy as np

from lope.graphs.graph import Bools, Graph

NAMES = ("reduction", "reduction_reversed", "redundant", "redundant_reversed", "far", "far_reversed", "incomparable")


def seven_relations(graph: Graph) -> Bools:
    """[7, n, n]: `relations[r, u, v]` says that u attends to v in relation r; r in the order of `NAMES`.

    In relations 1, 3, 5 v is a descendant of u, in 2, 4, 6 an ancestor. Dense: n² bytes each, for n up to a few 1,000.
    """
    n = graph.num_nodes
    edges = np.zeros((n, n), dtype=bool)
    edges[graph.edges[:, 0], graph.edges[:, 1]] = True
    reach = reachability(graph)
    bridged = np.zeros((n, n), dtype=bool)
    for node in range(n):
        successors = graph.successors(node)
        if len(successors) > 1:
            bridged[node] = reach[successors].any(axis=0)
    reduction, redundant, far = edges & ~bridged, edges & bridged, reach & ~edges
    incomparable = ~(reach | reach.T | np.eye(n, dtype=bool))
    return np.stack([reduction, reduction.T, redundant, redundant.T, far, far.T, incomparable])


def reachability(graph: Graph) -> Bools:
    """[n, n]: whether a path leads from u to v (transitive closure, u != v), O(n · edges / 64) word operations."""
    n = graph.num_nodes
    words = np.zeros((n, (n + 7) // 8), dtype=np.uint8)
    bit_of = np.packbits(np.eye(n, dtype=bool), axis=1)
    for node in graph.topological_order[::-1]:
        successors = graph.successors(int(node))
        if len(successors):
            words[node] = np.bitwise_or.reduce(words[successors] | bit_of[successors], axis=0)
    return np.unpackbits(words, axis=1, count=n).astype(bool)
