"""UCB-Tuned (Auer, Cesa-Bianchi, Fischer 2002, section 4): UCB1 whose bonus knows the arm's variance."""

import math
from dataclasses import dataclass

import numpy as np

from lope.learning.bandits.session import BanditSession
from lope.learning.bandits.tally import Forgetting, Tally
from lope.learning.bandits.ucb1 import UNKNOWN

MOST_VARIANCE = 0.25  # of anything in [0, 1]


@dataclass(frozen=True)
class UCBTuned:
    """argmax mean_i + sqrt(ln t / n_i min(1/4, V_i)), V_i = var_i + sqrt(2 ln t / n_i). No bound is proved for it.

    Waiting plays and forgetting as in UCB1.
    """

    window: int | None = None
    discount: float = 1.0

    def __post_init__(self) -> None:
        self.forgetting()

    def open(self, num_arms: int, seed: int = 0) -> BanditSession:
        """A bandit that knows nothing yet."""
        return BanditSession(self, num_arms, seed)

    def forgetting(self) -> Forgetting:
        """How the past fades."""
        return Forgetting(self.window, self.discount)

    def pick(self, tally: Tally, stream: np.random.Generator) -> tuple[int, float]:
        """The arm with the highest bound; arms never played come first."""
        total = sum(tally.counts) + sum(tally.waiting)
        log_total = math.log(total) if total > 1.0 else 0.0
        best, highest = 0, -math.inf
        for arm, count in enumerate(tally.counts):
            plays = count + tally.waiting[arm]
            if plays <= 0.0:
                return arm, 1.0
            mean = tally.sums[arm] / count if count > 0.0 else UNKNOWN
            spread = max(0.0, tally.squares[arm] / count - mean * mean) if count > 0.0 else MOST_VARIANCE
            variance = min(MOST_VARIANCE, spread + math.sqrt(2.0 * log_total / plays))
            bound = mean + math.sqrt(log_total / plays * variance)
            if bound > highest:
                best, highest = arm, bound
        return best, 1.0

    def credit(self, reward: float, probability: float, stream: np.random.Generator) -> float:
        """The reward itself."""
        return reward
