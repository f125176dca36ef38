"""The running state that memory heuristics share: what is ready, and what each ready node would free."""

from lope.graphs.graph import Graph


class Frontier:
    """Follows a run of a graph node by node; every number is kept up to date in O(degree) a step."""

    def __init__(self, graph: Graph) -> None:
        self._successors = graph.successor_lists
        self._predecessors = graph.predecessor_lists
        self.sizes: list[int] = graph.output_bytes.tolist()
        self.needs: list[int] = (graph.output_bytes + graph.scratch_bytes).tolist()
        self._waiting: list[int] = graph.in_degrees.tolist()
        # A kept result has one consumer that never runs.
        self._unmet: list[int] = (graph.out_degrees + graph.kept).tolist()
        self.freed = [0 if unmet else size for unmet, size in zip(self._unmet, self.sizes, strict=True)]
        self._is_done = [False] * graph.num_nodes
        for node, consumers in enumerate(self._successors):
            if self._unmet[node] == 1 and len(consumers) == 1:
                self.freed[consumers[0]] += self.sizes[node]
        self.ready = {node for node, count in enumerate(self._waiting) if count == 0}
        self.live = 0

    def copy(self) -> "Frontier":
        """A frontier that goes on by itself from here."""
        twin = object.__new__(Frontier)
        twin.__dict__.update(self.__dict__)
        twin._waiting, twin._unmet = self._waiting.copy(), self._unmet.copy()
        twin._is_done, twin.freed, twin.ready = self._is_done.copy(), self.freed.copy(), self.ready.copy()
        return twin

    def net(self, node: int) -> int:
        """By how many bytes the live total grows once a ready node has run."""
        return self.sizes[node] - self.freed[node]

    def run(self, node: int) -> tuple[list[int], list[int]]:
        """Run a ready node; returns the nodes that became ready, and the ready ones that now free more."""
        self.ready.remove(node)
        self._is_done[node] = True
        self.live += self.net(node)
        fresh, changed = [], []
        for successor in self._successors[node]:
            self._waiting[successor] -= 1
            if self._waiting[successor] == 0:
                self.ready.add(successor)
                fresh.append(successor)
        for used in self._predecessors[node]:
            self._unmet[used] -= 1
            if self._unmet[used] == 1:
                last = next((other for other in self._successors[used] if not self._is_done[other]), None)
                if last is not None:
                    self.freed[last] += self.sizes[used]
                    if self._waiting[last] == 0:
                        changed.append(last)
        return fresh, changed
