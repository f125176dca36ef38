"""Least peak memory first, as in PyTorch inductor (`torch/_inductor/memory.py`, `topological_sort_lpmf`)."""

import heapq
from dataclasses import dataclass

import numpy as np

from lope.graphs.graph import Graph, Ints
from lope.graphs.orders.frontier import Frontier


@dataclass(frozen=True)
class LpmfOrder:
    """Of the ready nodes that fit under the peak so far, the one that leaves least; if none fits, the smallest.

    inductor's key is (size if size > peak - live else 0, size - bytes freed, number); the peak starts at the sum of
    the graph outputs. Two heaps give the same choice without a scan of all ready nodes.
    """

    def order(self, graph: Graph) -> Ints:
        """[n] node numbers."""
        frontier = Frontier(graph)
        peak = int(graph.output_bytes[graph.kept].sum())
        by_net: list[tuple[int, int]] = []
        by_need: list[tuple[int, int, int]] = []
        order = []
        fresh, changed = list(frontier.ready), list[int]()
        for _ in range(graph.num_nodes):
            for node in (*fresh, *changed):
                heapq.heappush(by_net, (frontier.net(node), node))
                heapq.heappush(by_need, (frontier.needs[node], frontier.net(node), node))
            node = _choose(frontier, by_net, by_need, peak - frontier.live)
            order.append(node)
            peak = max(peak, frontier.live + frontier.needs[node])
            fresh, changed = frontier.run(node)
        return np.array(order, dtype=np.int64)


def _choose(frontier: Frontier, by_net: list[tuple[int, int]], by_need: list[tuple[int, int, int]], gap: int) -> int:
    """The ready node of least net among those that need at most `gap`, else the one that needs least."""
    while by_need[0][2] not in frontier.ready or by_need[0][1] != frontier.net(by_need[0][2]):
        heapq.heappop(by_need)
    if by_need[0][0] > gap:
        return by_need[0][2]
    aside = []
    while True:
        net, node = heapq.heappop(by_net)
        if node not in frontier.ready or net != frontier.net(node):
            continue
        if frontier.needs[node] <= gap:
            break
        aside.append((net, node))
    for entry in aside:
        heapq.heappush(by_net, entry)
    return node
