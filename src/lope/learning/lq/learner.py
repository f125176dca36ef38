"""The door between a linear system and those who learn to control it."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lope.learning.lq.posterior import Posterior
from lope.learning.lq.system import LinearSystem, Matrix

Streams = Sequence[np.random.Generator]

# The public setting's prior (yeoneung/tsld): every entry of A and B ~ N(1/2, 1/5).
PRIOR_MEAN, PRIOR_VARIANCE = 0.5, 0.2


class LqSession(Protocol):
    """N controllers at work on N copies of one system. episodes: [N], how often each has planned."""

    episodes: NDArray[np.int64]

    def act(self, states: Matrix) -> Matrix:
        """Inputs [N, m] for states [N, n]."""
        ...

    def learn(self, states: Matrix, inputs: Matrix, arrived: Matrix) -> None:
        """What came of it: [N, n], [N, m], [N, n]."""
        ...


class LqLearner(Protocol):
    """Frozen settings of a controller."""

    def open(self, system: LinearSystem, streams: Streams) -> LqSession:
        """N sessions, one per stream. Learners read the costs, sizes and noise of `system`; A and B they must find."""
        ...


def prior(system: LinearSystem, num_runs: int, mean: float, variance: float) -> Posterior:
    """N(mean, variance) on every entry of [A B]', for N runs."""
    size = system.num_states + system.num_inputs
    means = np.full((num_runs, size, system.num_states), mean)
    return Posterior(means, np.tile(variance**0.5 * np.eye(size), (num_runs, 1, 1)), system.noise)
