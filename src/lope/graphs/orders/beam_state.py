"""One set of nodes that have run, as the searches over down-sets see it."""

from lope.graphs.graph import Graph
from lope.graphs.orders.frontier import Frontier

Path = tuple[int, "Path | None"]


class BeamState:
    """A down-set with its frontier, the lowest peak known for it, and the order that reached it."""

    def __init__(self, frontier: Frontier, done: int, peak: int, path: Path | None) -> None:
        self.frontier = frontier
        self.done = done
        self.peak = peak
        self.path = path

    @classmethod
    def start(cls, graph: Graph, floor: int) -> "BeamState":
        """Nothing has run; peaks below `floor` count as `floor`."""
        return cls(Frontier(graph), 0, floor, None)

    def after(self, node: int) -> tuple[int, int]:
        """(peak, bytes held) once a ready node has run."""
        live = self.frontier.live
        return max(self.peak, live + self.frontier.needs[node]), live + self.frontier.net(node)

    def moves(self) -> list[int]:
        """The ready nodes worth trying: one alone if it costs nothing, else all.

        A node that fits under the peak and leaves no more than there was can run at once: moved to the front of any
        continuation it lowers no later step's room, for what it frees now it would also free later.
        """
        frontier = self.frontier
        room = self.peak - frontier.live
        for node in frontier.ready:
            if frontier.needs[node] <= room and frontier.net(node) <= 0:
                return [node]
        return list(frontier.ready)

    def child(self, node: int, *, reuse: bool = False) -> "BeamState":
        """The state after `node`; `reuse` hands over this state's tables, which must then not be used again."""
        peak, _ = self.after(node)
        frontier = self.frontier if reuse else self.frontier.copy()
        frontier.run(node)
        return BeamState(frontier, self.done | (1 << node), peak, (node, self.path))

    def order(self) -> list[int]:
        """The nodes in the order in which they ran."""
        found, path = [], self.path
        while path is not None:
            node, path = path
            found.append(node)
        return found[::-1]
