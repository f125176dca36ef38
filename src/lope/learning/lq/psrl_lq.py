"""PSRL-LQ, Thompson sampling for linear-quadratic control (Ouyang, Gagrani, Jain 2017, arXiv:1709.04047)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lope.core.checks import above, at_least
from lope.core.errors import RunError, SettingError
from lope.learning.lq.learner import PRIOR_MEAN, PRIOR_VARIANCE, Streams, prior
from lope.learning.lq.system import LinearSystem, Matrix, optimal_controller

LOG_HALF = math.log(0.5)


@dataclass(frozen=True)
class PsrlLq:
    """Draw (A, B) from the posterior, use its optimal gain, until a stopping rule ends the episode.

    growth: an episode is at most one step longer than the one before (t > t_k + T_{k-1} ends it).
    halving: it ends when the determinant of the covariance is below half of that at its start.
    closed_loop, measure: a draw is admissible if |A - B K| of the draw itself is below closed_loop, |.| being the
    spectral norm (`norm`, the paper's kind of set) or the spectral radius (`radius`). min_length: no episode is
    shorter, with which a spectral radius suffices (Gagrani et al., CDC 2022). restart: forget everything every so
    many steps, for parameters that drift. max_draws: RunError after so many inadmissible draws in a row.
    """

    growth: bool = True
    halving: bool = True
    min_length: int = 1
    restart: int | None = None
    closed_loop: float = 0.99
    measure: str = "norm"
    prior_mean: float = PRIOR_MEAN
    prior_variance: float = PRIOR_VARIANCE
    max_draws: int = 10_000

    def __post_init__(self) -> None:
        if not (self.growth or self.halving):
            raise SettingError("psrl_lq needs growth or halving, or its first episode never ends")
        if self.measure not in ("norm", "radius"):
            raise SettingError(f"measure must be norm or radius, not {self.measure!r}")
        at_least("min_length", self.min_length, 1)
        at_least("max_draws", self.max_draws, 1)
        above("closed_loop", self.closed_loop, 0.0)
        above("prior_variance", self.prior_variance, 0.0)
        if self.restart is not None:
            at_least("restart", self.restart, 1)

    def open(self, system: LinearSystem, streams: Streams) -> "PsrlLqSession":
        """N controllers that know the costs and the noise."""
        return PsrlLqSession(self, system, streams)


class PsrlLqSession:
    """N runs on one clock. gains: [N, m, n]. rejected: draws thrown away, all runs together."""

    def __init__(self, rule: PsrlLq, system: LinearSystem, streams: Streams) -> None:
        num_runs = len(streams)
        self._rule, self._streams = rule, streams
        self._costs = (system.state_cost, system.input_cost)
        self._num_states, self._time = system.num_states, 0
        self.posterior = prior(system, num_runs, rule.prior_mean, rule.prior_variance)
        self._fresh = prior(system, num_runs, rule.prior_mean, rule.prior_variance)
        self.gains = np.zeros((num_runs, system.num_inputs, system.num_states))
        self._began = np.zeros(num_runs, dtype=np.int64)
        self._previous = np.zeros(num_runs, dtype=np.int64)
        self._log_det = np.full(num_runs, np.inf)
        self.episodes = np.zeros(num_runs, dtype=np.int64)
        self.rejected = 0

    def act(self, states: Matrix) -> Matrix:
        """u = -K_k x, after starting the episodes that are due."""
        if self._rule.restart is not None and self._time > 0 and self._time % self._rule.restart == 0:
            self.posterior.restart(self._fresh)
            self._log_det[:] = np.inf
            self._previous[:] = 0
            self._began[:] = self._time - self._rule.min_length
        for run in np.flatnonzero(self._over()):
            self._begin(int(run))
        inputs: Matrix = -(self.gains @ states[..., None])[..., 0]
        return inputs

    def learn(self, states: Matrix, inputs: Matrix, arrived: Matrix) -> None:
        """Update the posterior of (A, B)."""
        self.posterior.update(np.hstack([states, inputs]), arrived)
        self._time += 1

    def _over(self) -> NDArray[np.bool_]:
        """t > t_k + T_{k-1}, or det S_t < det S_{t_k} / 2, once the episode is long enough."""
        length = self._time - self._began
        over: NDArray[np.bool_] = self._log_det == np.inf
        if self._rule.growth:
            over |= length > self._previous
        if self._rule.halving:
            over |= self.posterior.log_det < self._log_det + LOG_HALF
        over &= (length >= self._rule.min_length) | (self.episodes == 0)
        return over

    def _begin(self, run: int) -> None:
        if self.episodes[run]:
            self._previous[run] = self._time - self._began[run]
        self._began[run] = self._time
        self._log_det[run] = self.posterior.log_det[run]
        self.gains[run] = self._draw(run)
        self.episodes[run] += 1

    def _draw(self, run: int) -> Matrix:
        """The gain of the first admissible draw; a draw without a Riccati solution is not admissible."""
        mean, root, stream = self.posterior.mean[run], self.posterior.root[run], self._streams[run]
        for _ in range(self._rule.max_draws):
            theta = mean + root @ stream.standard_normal(mean.shape)
            state_map, input_map = theta[: self._num_states].T, theta[self._num_states :].T
            try:
                gain = optimal_controller(state_map, input_map, *self._costs).gain
            except np.linalg.LinAlgError:
                self.rejected += 1
                continue
            if self._size(state_map - input_map @ gain) < self._rule.closed_loop:
                return gain
            self.rejected += 1
        raise RunError(
            f"no admissible system in {self._rule.max_draws} draws of the posterior; "
            "allow more with closed_loop, measure=radius or max_draws"
        )

    def _size(self, closed_loop: Matrix) -> float:
        if self._rule.measure == "norm":
            return float(np.linalg.norm(closed_loop, 2))
        return float(abs(np.linalg.eigvals(closed_loop)).max())
