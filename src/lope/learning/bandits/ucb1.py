"""UCB1 (Auer, Cesa-Bianchi, Fischer 2002, figure 1); with forgetting, D-UCB and SW-UCB (arXiv:0805.3415)."""

import math
from dataclasses import dataclass

import numpy as np

from lope.core.checks import at_least
from lope.learning.bandits.session import BanditSession
from lope.learning.bandits.tally import Forgetting, Tally

UNKNOWN = 0.5  # the mean of an arm all of whose plays are still waiting: the middle of [0, 1]


@dataclass(frozen=True)
class UCB1:
    """argmax mean_i + sqrt(bonus ln t / n_i); bonus 2 is the paper's. Ties go to the first arm.

    Waiting plays count in t and n_i (not in the mean), so that requests which choose together spread. With forgetting
    t is the weight of all plays that still count, as in the paper's n_t(gamma) and min(t, tau); bonus 2 is then its
    B = 1, xi = 1/2.
    """

    bonus: float = 2.0
    window: int | None = None
    discount: float = 1.0

    def __post_init__(self) -> None:
        at_least("bonus", self.bonus, 0.0)
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
        scale = self.bonus * math.log(total) if total > 1.0 else 0.0
        best, highest = 0, -math.inf
        for arm, (count, gained, waiting) in enumerate(zip(tally.counts, tally.sums, tally.waiting, strict=True)):
            plays = count + waiting
            if plays <= 0.0:
                return arm, 1.0
            bound = (gained / count if count > 0.0 else UNKNOWN) + math.sqrt(scale / plays)
            if bound > highest:
                best, highest = arm, bound
        return best, 1.0

    def credit(self, reward: float, probability: float, stream: np.random.Generator) -> float:
        """The reward itself."""
        return reward
