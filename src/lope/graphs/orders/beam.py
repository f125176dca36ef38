"""Beam search for little memory (the approximate DP that Gagrani et al. 2022, arXiv 2207.05899, compare with)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lope.core.checks import above, at_least
from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.memory import peak_lower_bound, peak_memory
from lope.graphs.orders.beam_state import BeamState, Run
from lope.graphs.orders.by_priority import check_priorities
from lope.graphs.orders.greedy_memory import GreedyMemoryOrder
from lope.graphs.orders.set_search import Found, Score, SetSearch

# How far between what every order needs and the best known order peaks stop to matter, in turn.
FLOORS = (0.0, 0.9, 0.97)


@dataclass(frozen=True)
class BeamOrder:
    """Keeps the `width` best sets at each step: lowest peak, then least held once what a run allows has been freed.

    With `seconds` it is anytime: from the greedy order on, widths 1, 2, 4, ... each with several `FLOORS`, until the
    time is up or an order is proven best; `width` then plays no part. More time never gives a worse order.
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
        return improve(graph, GreedyMemoryOrder().order(graph), self.seconds)


def beam_order(graph: Graph, width: int, *, priorities: ArrayLike | None = None) -> Ints:
    """[n] the order that a beam of `width` sets finds; `priorities` [n] break ties (higher runs first).

    Raises GraphError unless there is one priority for each node.
    """
    at_least("width", width, 1)
    score = least_held if priorities is None else _with_priorities(check_priorities(graph, priorities))
    found = SetSearch(width).run(graph, score)
    assert found.order is not None
    return found.order


def improve(graph: Graph, order: Ints, seconds: float) -> Ints:
    """[n] an order with a peak below that of `order`, found within about `seconds`; else `order` itself."""
    deadline = time.monotonic() + seconds
    least = peak_lower_bound(graph)
    width, peak = 1, peak_memory(graph, order)
    while peak > least:
        for share in FLOORS:
            floor = least + int(share * (peak - least))
            found: Found = SetSearch(width, floor, peak, deadline).run(graph, least_held)
            if found.order is not None:
                order, peak = found.order, peak_memory(graph, found.order)
            if found.is_proven or time.monotonic() > deadline:
                return order
        width *= 2
    return order


def least_held(state: BeamState, runs: Sequence[Run]) -> list[float]:
    """Bytes held after each run and the node that it makes free, if that lowers them."""
    return [run.live + state.relief(run) for run in runs]


def _with_priorities(wanted: Floats) -> Score:
    # Less than one byte, so that they only break ties.
    small = (-wanted / (4 * max(1.0, float(np.abs(wanted).max(initial=0.0))))).tolist()

    def score(state: BeamState, runs: Sequence[Run]) -> list[float]:
        return [held + small[run.nodes[0]] for held, run in zip(least_held(state, runs), runs, strict=True)]

    return score
