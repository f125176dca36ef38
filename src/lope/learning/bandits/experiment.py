"""Regret of bandits on Bernoulli arms, over many seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lope.core.checks import between
from lope.core.errors import UsageError
from lope.learning import BANDITS
from lope.learning.trials import Trials

ENVIRONMENT, LEARNER = 74, 75  # the two streams of a seed: all methods meet the same luck


@dataclass(frozen=True)
class BernoulliExperiment:
    """Arms that pay 1 with these chances, else 0; from step `switch_at` on in reversed order, if given.

    Regret is the sum of (best chance - chance of the arm played), against the best arm of the moment.
    """

    chances: tuple[float, ...] = (0.6, 0.4)
    switch_at: int | None = None

    def __post_init__(self) -> None:
        if not self.chances:
            raise UsageError("a bandit needs at least one arm")
        for chance in self.chances:
            between("a chance", chance, 0.0, 1.0)

    def check(self, method: str) -> None:
        """Raises what is wrong with a bandit's name or settings."""
        BANDITS.make(method).open(len(self.chances), 0).choose()

    def run(self, method: str, seeds: Sequence[int], steps: int, at: NDArray[np.int64]) -> Trials:
        """One seed after the other: the point is to call the bandit as a decoding loop does."""
        lost = np.stack([self._regret(method, seed, steps)[at - 1] for seed in seeds])
        return Trials(lost, np.full(len(seeds), max(self.chances)), np.full(len(seeds), steps))

    def _regret(self, method: str, seed: int, steps: int) -> NDArray[np.float64]:
        stream = np.random.default_rng([seed, ENVIRONMENT])
        bandit = BANDITS.make(method).open(len(self.chances), [seed, LEARNER])
        now, best, lost = self.chances, max(self.chances), np.empty(steps)
        for step, luck in enumerate(stream.random(steps).tolist()):
            if step == self.switch_at:
                now = now[::-1]
            arm = bandit.choose()
            bandit.learn(arm, 1.0 if luck < now[arm] else 0.0)
            lost[step] = best - now[arm]
        return lost.cumsum()
