"""What an experiment gives back: regret at chosen steps for every seed, and the mean with its standard error."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lope.core.checks import at_least

CHECKPOINTS = 100


@dataclass(frozen=True, eq=False)
class Trials:
    """N runs of one method.

    regret: [N, C], cumulative at each checkpoint. optimum: [N], the best average cost (or reward) per step of each
    run's problem. episodes: [N], how often the learner planned anew.
    """

    regret: NDArray[np.float64]
    optimum: NDArray[np.float64]
    episodes: NDArray[np.int64]

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean regret over the runs, [C]."""
        mean: NDArray[np.float64] = self.regret.mean(axis=0)
        return mean

    @property
    def stderr(self) -> NDArray[np.float64]:
        """Standard error of that mean, [C]; NaN for a single run, whose spread is unknown."""
        if len(self.regret) < 2:
            return np.full(self.regret.shape[1], np.nan)
        with np.errstate(invalid="ignore", over="ignore"):  # a lost run has no finite spread
            error: NDArray[np.float64] = self.regret.std(axis=0, ddof=1) / np.sqrt(len(self.regret))
        return error


def join(parts: list[Trials]) -> Trials:
    """The runs of several parts, in order."""
    return Trials(
        np.concatenate([part.regret for part in parts]),
        np.concatenate([part.optimum for part in parts]),
        np.concatenate([part.episodes for part in parts]),
    )


def checkpoints(steps: int, count: int = CHECKPOINTS) -> NDArray[np.int64]:
    """At most `count` steps, evenly spread, the last one being `steps` itself."""
    at_least("steps", steps, 1)
    return np.unique(np.linspace(steps / count, steps, count).round().astype(np.int64).clip(1))
