"""Beam search over orders in which beams that have run the same set of nodes are merged.

What a set of nodes holds, and what can still follow it, depend on the set alone, not on the order in which it ran: of
two beams with equal sets the one with the lower peak is never worse. A wide enough beam is the exact dynamic programme
over down-sets; a narrow one is the approximate DP that Gagrani et al. 2022 (arXiv 2207.05899) compare with.
"""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lope.core.checks import above, at_least
from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.memory import peak_lower_bound, peak_memory
from lope.graphs.orders.beam_state import BeamState
from lope.graphs.orders.greedy_memory import GreedyMemoryOrder


@dataclass(frozen=True)
class BeamOrder:
    """Keeps the `width` best sets at each step: lowest peak, then least held, then highest priority of the last node.

    With `seconds` it is anytime: widths 1, 2, 4, ... in turn, `width` set aside, until the time is up or one of them
    had to drop no set (its order is optimal). The best order so far is returned, in no case worse than greedy memory.
    """

    width: int = 16
    seconds: float | None = None

    def __post_init__(self) -> None:
        at_least("width", self.width, 1)
        if self.seconds is not None:
            above("seconds", self.seconds, 0)

    def order(self, graph: Graph) -> Ints:
        """[n] node numbers."""
        if self.seconds is None:
            return beam_order(graph, self.width)
        deadline = time.monotonic() + self.seconds
        best = GreedyMemoryOrder().order(graph)
        least = peak_lower_bound(graph)
        width, is_exact = 1, False
        while not is_exact and time.monotonic() < deadline and peak_memory(graph, best) > least:
            found, is_exact = _search(graph, width, np.zeros(graph.num_nodes), deadline)
            if found is not None:
                best = min(best, found, key=lambda order: peak_memory(graph, order))
            width *= 2
        return best


def beam_order(graph: Graph, width: int, *, priorities: ArrayLike | None = None) -> Ints:
    """[n] the order that a beam of `width` sets finds; `priorities` [n] break ties (higher runs first).

    A wide beam costs about `width` * num_nodes * (number of ready nodes) steps.
    """
    at_least("width", width, 1)
    wanted = np.zeros(graph.num_nodes) if priorities is None else np.asarray(priorities, dtype=np.float64)
    found, _ = _search(graph, width, wanted, None)
    assert found is not None
    return found


def _search(graph: Graph, width: int, priorities: Floats, deadline: float | None) -> tuple[Ints | None, bool]:
    """The best order that a beam finds (None if the deadline passes first), and whether it dropped no set at all."""
    # Peaks below what every order must reach are all the same.
    beams = [BeamState.start(graph, peak_lower_bound(graph))]
    keys = (-priorities).tolist()
    is_exact = True
    for _ in range(graph.num_nodes):
        if deadline is not None and time.monotonic() > deadline:
            return None, False
        moves = [
            (*state.after(node), keys[node], index, node) for index, state in enumerate(beams) for node in state.moves()
        ]
        moves.sort()
        beams, dropped = _grow(beams, moves, width)
        is_exact &= not dropped
    return np.array(beams[0].order(), dtype=np.int64), is_exact


def _grow(
    beams: list[BeamState], moves: list[tuple[int, int, float, int, int]], width: int
) -> tuple[list[BeamState], bool]:
    """The first `width` different sets that the sorted moves reach, and whether there were more.

    The first move into a set has its lowest peak.
    """
    chosen: dict[int, tuple[int, int]] = {}
    dropped = False
    for *_, index, node in moves:
        reached = beams[index].done | (1 << node)
        if reached not in chosen and len(chosen) == width:
            dropped = True
            break
        chosen.setdefault(reached, (index, node))
    children = [0] * len(beams)
    for index, _ in chosen.values():
        children[index] += 1
    grown = []
    for index, node in chosen.values():
        children[index] -= 1
        # The last child takes over its parent's tables instead of copying them.
        grown.append(beams[index].child(node, reuse=children[index] == 0))
    return grown, dropped
