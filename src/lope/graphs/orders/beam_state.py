"""One set of nodes that have run, as the searches over such sets see it."""

from typing import NamedTuple

from lope.graphs.graph import Graph
from lope.graphs.orders.chains import Chains
from lope.graphs.orders.frontier import Frontier

Path = tuple[tuple[int, ...], "Path | None"]


class Run(NamedTuple):
    """Nodes that run in one go, and the `peak` and `live` bytes once they have."""

    peak: int
    live: int
    nodes: tuple[int, ...]


class BeamState:
    """A set with its frontier, the lowest peak known for it, and the order that reached it.

    `done` has one bit per node that has run; `rank` is what a search sorts by among equal peaks.
    """

    def __init__(self, chains: Chains, frontier: Frontier) -> None:
        self._chains = chains
        self.frontier = frontier
        self.done, self.num_done = 0, 0
        self.peak, self.rank = 0, 0.0
        self.path: Path | None = None

    @classmethod
    def start(cls, graph: Graph, floor: int) -> "BeamState":
        """Nothing has run; peaks below `floor` count as `floor`."""
        state = cls(Chains.of(graph), Frontier(graph))
        state.peak = floor
        return state

    def after(self, node: int) -> tuple[int, int]:
        """(peak, bytes held) once one ready node has run."""
        live = self.frontier.live
        return max(self.peak, live + self.frontier.needs[node]), live + self.frontier.net(node)

    def moves(self) -> list[int]:
        """The ready nodes worth trying: one alone if it costs nothing, else all.

        A node that fits under the peak and leaves no more than there was can run at once: moved to the front of any
        continuation it takes no later step's room, for what it frees now it would also free later.
        """
        frontier = self.frontier
        room = self.peak - frontier.live
        for node in frontier.ready:
            if frontier.needs[node] <= room and frontier.net(node) <= 0:
                return [node]
        return list(frontier.ready)

    def runs(self) -> list[Run]:
        """As `moves`, but each ready node takes along what follows in its chain: fewer and longer steps."""
        found = []
        for node in self.frontier.ready:
            run = self.run_of(node)
            if run.peak <= self.peak and run.live <= self.frontier.live:
                return [run]
            found.append(run)
        return found

    def run_of(self, node: int) -> Run:
        """A ready node, and its chain as far as the first stop that costs nothing, else as far as the lowest."""
        frontier = self.frontier
        before = frontier.live
        live = before + frontier.sizes[node] - frontier.freed[node]
        peak = max(self.peak, before + frontier.needs[node])
        stops = self._chains.stops[node]
        if live <= before or len(stops) == 1:
            return Run(peak, live, (node,))
        chosen = stops[-1]
        for stop in stops:
            if live + stop.change <= before:
                chosen = stop
                break
        return Run(max(peak, live + chosen.rise), live + chosen.change, self._chains.nodes(node, chosen.steps))

    def relief(self, run: Run) -> int:
        """By how many bytes the best node that only waits for `run` would lower what it leaves, without a new peak."""
        return self.frontier.relief(run.nodes[-1], run.peak - run.live)

    def reached(self, nodes: tuple[int, ...]) -> int:
        """The set after `nodes` have run too."""
        done = self.done
        for node in nodes:
            done |= 1 << node
        return done

    def child(self, node: int, *, reuse: bool = False) -> "BeamState":
        """The state after one ready node."""
        return self.follow(Run(*self.after(node), (node,)), reuse=reuse)

    def follow(self, run: Run, *, reuse: bool = False) -> "BeamState":
        """The state after `run`; `reuse` hands over this state's tables, which must then not be used again."""
        frontier = self.frontier if reuse else self.frontier.copy()
        for node in run.nodes:
            frontier.run(node)
        state = BeamState(self._chains, frontier)
        state.done, state.num_done = self.reached(run.nodes), self.num_done + len(run.nodes)
        state.peak, state.path = run.peak, (run.nodes, self.path)
        return state

    def order(self) -> list[int]:
        """The nodes in the order in which they ran."""
        found: list[int] = []
        path = self.path
        while path is not None:
            nodes, path = path
            found.extend(reversed(nodes))
        return found[::-1]
