"""List scheduling as XLA does it (openxla/xla `hlo_memory_scheduler.cc`, ListScheduler)."""

import heapq
from dataclasses import dataclass

import numpy as np

from lope.graphs.graph import Graph, Ints
from lope.graphs.orders.frontier import Frontier


@dataclass(frozen=True)
class XlaListOrder:
    """Runs the ready node with the largest (bytes freed - bytes defined, number of users); ties: the newest entry.

    XLA also runs scalars first; a graph here has no shapes, so that rule is left out.
    """

    def order(self, graph: Graph) -> Ints:
        """[n] node numbers, in O((n + e) log n)."""
        frontier = Frontier(graph)
        users = np.bincount(graph.use_edges[:, 0], minlength=graph.num_nodes).tolist()
        entries = 0
        heap: list[tuple[int, int, int, int]] = []
        order = []
        fresh, changed = sorted(frontier.ready), list[int]()
        for _ in range(graph.num_nodes):
            for node in (*fresh, *changed):
                entries += 1
                heapq.heappush(heap, (frontier.net(node), -users[node], -entries, node))
            net, _, _, node = heapq.heappop(heap)
            while node not in frontier.ready or net != frontier.net(node):
                net, _, _, node = heapq.heappop(heap)
            order.append(node)
            fresh, changed = frontier.run(node)
        return np.array(order, dtype=np.int64)
