"""The least peak of all orders: a search over the sets of nodes that can have run (Ahn et al. 2020, MLSys)."""

import heapq
import time
from dataclasses import dataclass

import numpy as np

from lope.core.checks import above, at_least
from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph, Ints
from lope.graphs.memory import peak_lower_bound
from lope.graphs.orders.beam_state import BeamState


@dataclass(frozen=True)
class ExactOrder:
    """Opens down-sets by ascending peak; the first that holds all nodes is optimal (Dijkstra for the largest step).

    For small graphs: it gives up with a GraphError after `states` sets or `seconds`.
    """

    states: int = 200_000
    seconds: float = 60.0

    def __post_init__(self) -> None:
        at_least("states", self.states, 1)
        above("seconds", self.seconds, 0)

    def order(self, graph: Graph) -> Ints:
        """[n] an order with the least possible peak. Raises GraphError where it can't be proven within the limits."""
        deadline = time.monotonic() + self.seconds
        full = (1 << graph.num_nodes) - 1
        start = BeamState.start(graph, peak_lower_bound(graph))
        heap = [(start.peak, 0, 0, start)]
        # More nodes run first among equal peaks, so that the search dives.
        closed: set[int] = set()
        lowest = {0: start.peak}
        pushed = 0
        while heap:
            _, depth, _, state = heapq.heappop(heap)
            if state.done == full:
                return np.array(state.order(), dtype=np.int64)
            if state.done in closed:
                continue
            closed.add(state.done)
            if len(closed) > self.states or time.monotonic() > deadline:
                raise GraphError(
                    f"{graph.name}: no order is proven best within {self.states} sets and {self.seconds:g} s; "
                    "raise `states` or `seconds`, or use beam"
                )
            for run in state.runs():
                reached = state.reached(run.nodes)
                if reached not in closed and run.peak < lowest.get(reached, run.peak + 1):
                    lowest[reached] = run.peak
                    pushed += 1
                    heapq.heappush(heap, (run.peak, depth - len(run.nodes), pushed, state.follow(run)))
        raise AssertionError("a graph without cycles has an order")
