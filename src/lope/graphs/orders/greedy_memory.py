"""Greedy memory: run the ready node that needs least right now (a baseline of Gagrani et al. 2022)."""

import heapq
from dataclasses import dataclass

import numpy as np

from lope.graphs.graph import Graph, Ints
from lope.graphs.orders.frontier import Frontier


@dataclass(frozen=True)
class GreedyMemoryOrder:
    """Runs the ready node with the smallest (bytes while it runs, bytes held after it, number)."""

    def order(self, graph: Graph) -> Ints:
        """[n] node numbers, in O((n + e) log n)."""
        frontier = Frontier(graph)
        heap = [(frontier.needs[node], frontier.net(node), node) for node in frontier.ready]
        heapq.heapify(heap)
        order = []
        while heap:
            _, net, node = heapq.heappop(heap)
            if node not in frontier.ready or net != frontier.net(node):
                continue
            order.append(node)
            for group in frontier.run(node):
                for other in group:
                    heapq.heappush(heap, (frontier.needs[other], frontier.net(other), other))
        return np.array(order, dtype=np.int64)
