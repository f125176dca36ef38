"""The beam over sets of nodes that have run: what `beam` and learned rules search with.

What a set holds, and what can still follow it, depend on the set alone, not on the order in which it ran: of two paths
into one set the one with the lower peak is never worse, and the other is dropped.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lope.graphs.graph import Graph, Ints
from lope.graphs.memory import peak_lower_bound, peak_memory
from lope.graphs.orders.beam_state import BeamState, Run

Score = Callable[[BeamState, Sequence[Run]], Sequence[float]]
Entry = tuple[int, float, int, Run, BeamState]


@dataclass(frozen=True)
class Found:
    """What a search found: an order [n] or None, and whether no order has a lower peak (or, for None, one below)."""

    order: Ints | None
    is_proven: bool


@dataclass(frozen=True)
class SetSearch:
    """Keeps, of the sets with equally many nodes, the `width` with the lowest (peak, score).

    floor     peaks below it count as equal; used only between `peak_lower_bound` and the ceiling
    ceiling   only orders with a lower peak are of interest
    deadline  on the clock of time.monotonic; a search that passes it finds nothing
    """

    width: int
    floor: int = 0
    ceiling: int | None = None
    deadline: float | None = None

    def run(self, graph: Graph, score: Score) -> Found:
        """The order found; `score(state, runs)` ranks the runs of a state, lower first."""
        least = peak_lower_bound(graph)
        top = self.floor if self.ceiling is None else min(self.floor, self.ceiling - 1)
        floor = max(least, top)
        if not graph.num_nodes:
            return Found(np.zeros(0, dtype=np.int64), True)
        levels: list[list[Entry]] = [[] for _ in range(graph.num_nodes + 1)]
        self._extend(levels, BeamState.start(graph, floor), score)
        is_complete = True
        for count in range(1, graph.num_nodes):
            if self.deadline is not None and time.monotonic() > self.deadline:
                return Found(None, False)
            states, is_whole = self._keep(levels[count])
            levels[count] = []
            is_complete &= is_whole
            for state in states:
                self._extend(levels, state, score)
        if not levels[-1]:
            return Found(None, is_complete)
        *_, run, state = min(levels[-1], key=lambda entry: entry[:3])
        order = np.array(state.follow(run).order(), dtype=np.int64)
        peak = peak_memory(graph, order)
        return Found(order, peak == least or (is_complete and (peak > floor or floor == least)))

    def _extend(self, levels: list[list[Entry]], state: BeamState, score: Score) -> None:
        runs = state.runs()
        if self.ceiling is not None:
            runs = [run for run in runs if run.peak < self.ceiling]
        for run, rank in zip(runs, score(state, runs), strict=True):
            entries = levels[state.num_done + len(run.nodes)]
            entries.append((run.peak, rank, len(entries), run, state))

    def _keep(self, entries: list[Entry]) -> tuple[list[BeamState], bool]:
        """The best states of one level, and whether they are all that there are."""
        entries.sort(key=lambda entry: entry[:3])
        chosen: dict[int, Entry] = {}
        for entry in entries:
            reached = entry[4].reached(entry[3].nodes)
            if reached not in chosen and len(chosen) == self.width:
                return [_child(kept) for kept in chosen.values()], False
            chosen.setdefault(reached, entry)
        return [_child(kept) for kept in chosen.values()], True


def _child(entry: Entry) -> BeamState:
    _, rank, _, run, state = entry
    child = state.follow(run)
    child.rank = rank
    return child
