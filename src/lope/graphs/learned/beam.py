"""Beam search led by the masked sequential policy.

Of the sets of nodes that have run, those with the lowest peak so far are kept and, of equal peaks, those whose path the
policy finds most likely. Peaks below `floor` count as equal: up to there the policy decides, beyond it memory does.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from lope.core.checks import at_least
from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.orders.beam_state import BeamState, Run
from lope.graphs.orders.by_priority import check_priorities
from lope.graphs.orders.set_search import SetSearch


def policy_beam(
    graph: Graph, logits: ArrayLike, width: int, *, floor: int = 0, ceiling: int | None = None
) -> Ints | None:
    """[n] the order that the beam finds, or None where it finds none with a peak below `ceiling`.

    A run of a chain that the search takes in one go counts as its first node.
    """
    at_least("width", width, 1)
    values = check_priorities(graph, logits)

    def surprise(state: BeamState, runs: Sequence[Run]) -> list[float]:
        """−log P of the path to `state` and then of the first node of each run."""
        total = _log_sum(values[sorted(state.frontier.ready)])
        return [state.rank + total - float(values[run.nodes[0]]) for run in runs]

    return SetSearch(width, floor, ceiling).run(graph, surprise).order


def _log_sum(values: Floats) -> float:
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum()))
