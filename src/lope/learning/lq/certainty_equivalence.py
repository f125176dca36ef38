"""Certainty equivalence with fading dither (Mania, Tu, Recht 2019, arXiv:1902.07826)."""

from dataclasses import dataclass

import numpy as np

from lope.core.checks import above, at_least
from lope.learning.lq.learner import PRIOR_MEAN, PRIOR_VARIANCE, Streams, prior
from lope.learning.lq.system import LinearSystem, Matrix, optimal_controller


@dataclass(frozen=True)
class CertaintyEquivalence:
    """u = -K(mean) x + dither t^(-1/4) N(0, I), planned anew at t = 1, 2, 4, 8, ...

    The dither's variance falls as t^(-1/2), the rate for which regret is of order sqrt(t). Where the mean has no
    Riccati solution, the gain stays as it was (zero at first).
    """

    dither: float = 1.0
    prior_mean: float = PRIOR_MEAN
    prior_variance: float = PRIOR_VARIANCE

    def __post_init__(self) -> None:
        at_least("dither", self.dither, 0.0)
        above("prior_variance", self.prior_variance, 0.0)

    def open(self, system: LinearSystem, streams: Streams) -> "CertaintyEquivalenceSession":
        """N controllers that know the costs and the noise."""
        return CertaintyEquivalenceSession(self, system, streams)


class CertaintyEquivalenceSession:
    """N runs on one clock."""

    def __init__(self, rule: CertaintyEquivalence, system: LinearSystem, streams: Streams) -> None:
        self._rule, self._streams = rule, streams
        self._costs = (system.state_cost, system.input_cost)
        self._num_states, self._num_inputs, self._time = system.num_states, system.num_inputs, 0
        self.posterior = prior(system, len(streams), rule.prior_mean, rule.prior_variance)
        self.gains = np.zeros((len(streams), system.num_inputs, system.num_states))
        self.episodes = np.zeros(len(streams), dtype=np.int64)

    def act(self, states: Matrix) -> Matrix:
        """The gain of the mean, with dither."""
        step = self._time + 1
        if step & (step - 1) == 0:
            self._plan()
        dither = np.stack([stream.standard_normal(self._num_inputs) for stream in self._streams])
        inputs: Matrix = self._rule.dither * step**-0.25 * dither - (self.gains @ states[..., None])[..., 0]
        return inputs

    def learn(self, states: Matrix, inputs: Matrix, arrived: Matrix) -> None:
        """Update the posterior of (A, B)."""
        self.posterior.update(np.hstack([states, inputs]), arrived)
        self._time += 1

    def _plan(self) -> None:
        for run, theta in enumerate(self.posterior.mean):
            state_map, input_map = theta[: self._num_states].T, theta[self._num_states :].T
            try:
                self.gains[run] = optimal_controller(state_map, input_map, *self._costs).gain
            except np.linalg.LinAlgError:
                continue
            self.episodes[run] += 1
