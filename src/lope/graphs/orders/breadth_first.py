"""Breadth first: run next the node whose inputs were ready first (PyTorch inductor, `topological_sort_bfs`)."""

import heapq
from dataclasses import dataclass

import numpy as np

from lope.graphs.graph import Graph, Ints


@dataclass(frozen=True)
class BreadthFirstOrder:
    """First in, first out: of the ready nodes, the one whose predecessors' sorted steps come first; then the lower."""

    def order(self, graph: Graph) -> Ints:
        """[n] node numbers, in O(e log e)."""
        waiting = graph.in_degrees.tolist()
        step_of = [0] * graph.num_nodes
        ready: list[tuple[list[int], int]] = [([], node) for node, count in enumerate(waiting) if count == 0]
        order: list[int] = []
        while ready:
            _, node = heapq.heappop(ready)
            step_of[node] = len(order)
            order.append(node)
            for successor in graph.successor_lists[node]:
                waiting[successor] -= 1
                if waiting[successor] == 0:
                    steps = sorted(step_of[used] for used in graph.predecessor_lists[successor])
                    heapq.heappush(ready, (steps, successor))
        return np.array(order, dtype=np.int64)
