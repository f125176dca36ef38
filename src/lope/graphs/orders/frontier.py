"""The running state that memory heuristics share: what is ready, and what each ready node would free."""

import numpy as np

from lope.graphs.graph import Graph


class Frontier:
    """Follows a run of a graph node by node; every number is kept up to date in O(degree) a step.

    needs[v]   bytes that v allocates to run: result and scratch
    freed[v]   bytes that running v now would free: what it is the last to use
    live       bytes held by what has run
    """

    def __init__(self, graph: Graph) -> None:
        self._successors = graph.successor_lists
        self._used = graph.used_lists
        self.sizes: list[int] = graph.output_bytes.tolist()
        self.needs: list[int] = (graph.output_bytes + graph.scratch_bytes).tolist()
        self._waiting: list[int] = graph.in_degrees.tolist()
        # A kept result has one consumer that never runs, so its count never falls to 1 while real ones are left.
        uses = graph.use_edges
        self._unmet: list[int] = (np.bincount(uses[:, 0], minlength=graph.num_nodes) + graph.kept).tolist()
        # The numbers of all consumers still to come, XORed: with one left, this is that one.
        left = np.zeros(graph.num_nodes, dtype=np.int64)
        np.bitwise_xor.at(left, uses[:, 0], uses[:, 1])
        self._left: list[int] = left.tolist()
        self._kept: list[bool] = graph.kept.tolist()
        self.freed = [0 if unmet else size for unmet, size in zip(self._unmet, self.sizes, strict=True)]
        for node, unmet in enumerate(self._unmet):
            if unmet == 1 and not self._kept[node]:
                self.freed[self._left[node]] += self.sizes[node]
        self.ready = {node for node, count in enumerate(self._waiting) if count == 0}
        self.live = 0

    def copy(self) -> "Frontier":
        """A frontier that goes on by itself from here."""
        twin = object.__new__(Frontier)
        twin.__dict__.update(self.__dict__)
        twin._waiting, twin._unmet, twin._left = self._waiting.copy(), self._unmet.copy(), self._left.copy()
        twin.freed, twin.ready = self.freed.copy(), self.ready.copy()
        return twin

    def net(self, node: int) -> int:
        """By how many bytes the live total grows once a ready node has run."""
        return self.sizes[node] - self.freed[node]

    def relief(self, node: int, room: int) -> int:
        """The lowest net, if below 0, of a node that waits for the ready `node` alone and needs at most `room` bytes.

        An input that both use counts as still in use.
        """
        lowest = 0
        for other in self._successors[node]:
            if self._waiting[other] == 1 and self.needs[other] <= room:
                lowest = min(lowest, self.sizes[other] - self.freed[other])
        return lowest

    def run(self, node: int) -> tuple[list[int], list[int]]:
        """Run a ready node; returns the nodes that became ready, and the ready ones that now free more."""
        waiting, unmet, left = self._waiting, self._unmet, self._left
        self.ready.remove(node)
        self.live += self.sizes[node] - self.freed[node]
        fresh, changed = [], []
        for successor in self._successors[node]:
            waiting[successor] -= 1
            if waiting[successor] == 0:
                fresh.append(successor)
        self.ready.update(fresh)
        for used in self._used[node]:
            unmet[used] -= 1
            left[used] ^= node
            if unmet[used] == 1 and not self._kept[used]:
                last = left[used]
                self.freed[last] += self.sizes[used]
                if waiting[last] == 0:
                    changed.append(last)
        return fresh, changed
