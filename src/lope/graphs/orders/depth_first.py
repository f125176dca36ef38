"""Depth first: run what a node needs just before it, small nodes first (PyTorch inductor, `topological_sort_dfs`)."""

from dataclasses import dataclass

import numpy as np

from lope.graphs.graph import Graph, Ints


@dataclass(frozen=True)
class DepthFirstOrder:
    """Visits nodes by the bytes that they write and read, ascending; a visit runs its unmet inputs first, so sorted."""

    def order(self, graph: Graph) -> Ints:
        """[n] node numbers, in O(n log n + e log e)."""
        touched = graph.output_bytes.copy()
        np.add.at(touched, graph.use_edges[:, 1], graph.output_bytes[graph.use_edges[:, 0]])
        rank = np.empty(graph.num_nodes, dtype=np.int64)
        by_touched = np.argsort(touched, kind="stable")
        rank[by_touched] = np.arange(graph.num_nodes)
        ranks = rank.tolist()
        seen = [False] * graph.num_nodes
        order: list[int] = []
        for root in by_touched.tolist():
            if seen[root]:
                continue
            seen[root] = True
            path = [(root, iter(sorted(graph.predecessor_lists[root], key=ranks.__getitem__)))]
            while path:
                node, unmet = path[-1]
                used = next((other for other in unmet if not seen[other]), None)
                if used is None:
                    order.append(node)
                    path.pop()
                else:
                    seen[used] = True
                    path.append((used, iter(sorted(graph.predecessor_lists[used], key=ranks.__getitem__))))
        return np.array(order, dtype=np.int64)
