"""Thompson sampling with a Beta posterior (Agrawal and Goyal 2012, arXiv:1111.1797, algorithms 1 and 2)."""

import math
from dataclasses import dataclass

import numpy as np

from lope.core.checks import above
from lope.learning.bandits.session import BanditSession
from lope.learning.bandits.tally import Forgetting, Tally


@dataclass(frozen=True)
class BetaThompson:
    """Draw each arm's mean from Beta(success + gains, failure + losses), play the best draw.

    A reward between 0 and 1 becomes a coin with that chance (algorithm 2), which keeps the regret bound; fractional
    adds it to the posterior as it is, which has less noise and no proof. Waiting plays do not narrow the posterior:
    each draw is fresh, so requests that choose together spread by themselves. discount is dTS (arXiv:1707.09727).
    """

    success: float = 1.0
    failure: float = 1.0
    fractional: bool = False
    window: int | None = None
    discount: float = 1.0

    def __post_init__(self) -> None:
        above("success", self.success, 0.0)
        above("failure", self.failure, 0.0)
        self.forgetting()

    def open(self, num_arms: int, seed: int = 0) -> BanditSession:
        """A bandit that knows nothing yet."""
        return BanditSession(self, num_arms, seed)

    def forgetting(self) -> Forgetting:
        """How the past fades."""
        return Forgetting(self.window, self.discount)

    def posterior(self, tally: Tally, arm: int) -> tuple[float, float]:
        """The two parameters of the arm's Beta law."""
        gains = tally.sums[arm]
        return self.success + gains, self.failure + (tally.counts[arm] - gains)

    def pick(self, tally: Tally, stream: np.random.Generator) -> tuple[int, float]:
        """The arm with the highest draw. Scalar draws: up to a dozen arms they beat one vector draw."""
        beta, success, failure = stream.beta, self.success, self.failure
        best, highest = 0, -math.inf
        counts = tally.counts
        for arm, gains in enumerate(tally.sums):
            drawn = beta(success + gains, failure + (counts[arm] - gains))
            if drawn > highest:
                best, highest = arm, drawn
        return best, 1.0

    def credit(self, reward: float, probability: float, stream: np.random.Generator) -> float:
        """The reward, or a coin with that chance of 1."""
        if self.fractional or reward == 0.0 or reward == 1.0:
            return reward
        return 1.0 if stream.random() < reward else 0.0
