"""Beam search over the masked sequential policy, with merging of beams that have run the same set of nodes.

Kept are the `width` sets with the lowest peak so far and, of equal peaks, the most likely path. Peaks
below `floor` count as equal: up to there the policy decides, beyond it memory does. What a set holds and what can come
after depend on the set alone, so of two paths into one set the one that ranks first stays.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lope.core.checks import at_least
from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.memory import peak_lower_bound
from lope.graphs.orders.frontier import Frontier

Path = tuple[int, "Path | None"]


@dataclass(frozen=True)
class Beam:
    """One set of nodes that have run (`done`, as bits), its lowest peak and log-probability, and how it was reached."""

    frontier: Frontier
    done: int
    peak: int
    log_probability: float
    path: Path | None

    def moves(self) -> list[tuple[int, int]]:
        """(peak, node) of the ready nodes worth trying: one alone if it fits and frees what it takes, else all."""
        frontier = self.frontier
        room = self.peak - frontier.live
        for node in sorted(frontier.ready):
            if frontier.needs[node] <= room and frontier.net(node) <= 0:
                return [(self.peak, node)]
        return [(max(self.peak, frontier.live + frontier.needs[node]), node) for node in sorted(frontier.ready)]

    def child(self, node: int, peak: int, log_probability: float) -> "Beam":
        """The beam after `node`."""
        frontier = self.frontier.copy()
        frontier.run(node)
        return Beam(frontier, self.done | (1 << node), peak, log_probability, (node, self.path))

    def order(self) -> list[int]:
        """The nodes in the order in which they ran."""
        found, path = [], self.path
        while path is not None:
            node, path = path
            found.append(node)
        return found[::-1]


def policy_beam(graph: Graph, logits: ArrayLike, width: int, *, floor: int = 0) -> Ints:
    """[n] the order that the beam finds; about `width` · n · (ready nodes) steps of Python."""
    at_least("width", width, 1)
    values: Floats = np.asarray(logits, dtype=np.float64)
    beams = [Beam(Frontier(graph), 0, max(floor, peak_lower_bound(graph)), 0.0, None)]
    for _ in range(graph.num_nodes):
        moves = []
        for index, beam in enumerate(beams):
            total = _log_sum(values[list(beam.frontier.ready)])
            for peak, node in beam.moves():
                moves.append((peak, total - float(values[node]) - beam.log_probability, index, node))
        moves.sort()
        beams = _grow(beams, moves, width)
    return np.array(beams[0].order(), dtype=np.int64)


def _grow(beams: list[Beam], moves: list[tuple[int, float, int, int]], width: int) -> list[Beam]:
    """The first `width` different sets that the sorted moves (peak, −log P, beam, node) reach."""
    chosen: dict[int, Beam] = {}
    for peak, surprise, index, node in moves:
        reached = beams[index].done | (1 << node)
        if reached not in chosen:
            chosen[reached] = beams[index].child(node, peak, -surprise)
            if len(chosen) == width:
                break
    return list(chosen.values())


def _log_sum(values: Floats) -> float:
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum()))
