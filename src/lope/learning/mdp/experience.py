"""What N runs have seen so far, and the door that learners read it through."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Streams = Sequence[np.random.Generator]


@dataclass(frozen=True, eq=False)
class Experience:
    """The statistics of N runs at the start of an episode; copies, so a learner may keep them.

    times: [N], the step about to be taken, from 1. visits: [N, S, A] counts N_t(s, a). moves: [N, S, A, S] counts.
    cost_sums: [N, S, A], sums of observed costs. costs: [N, S, A], the known mean costs, or None where they must be
    learned from observations with Gaussian noise of standard deviation cost_noise. previous: [N], T_{k-1}.
    """

    times: NDArray[np.int64]
    visits: NDArray[np.int64]
    moves: NDArray[np.int64]
    cost_sums: NDArray[np.float64]
    costs: NDArray[np.float64] | None
    cost_noise: float
    previous: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Plan:
    """What a learner wants for its next episode.

    policy: [N, S]. most_visits: [N, S, A], the episode ends once a count is above this. longest: [N], steps at most.
    """

    policy: NDArray[np.int64]
    most_visits: NDArray[np.float64]
    longest: NDArray[np.float64]


class MdpLearner(Protocol):
    """Learns a process by acting in it, an episode at a time, for N independent runs at once."""

    def plan(self, experience: Experience, streams: Streams) -> Plan:
        """Policies and stopping rules of the next episode; all chance comes from each run's own stream."""
        ...
