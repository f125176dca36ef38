"""EXP3 (Auer, Cesa-Bianchi, Freund, Schapire 2002, figure 1): no assumption on where rewards come from."""

import math
from dataclasses import dataclass

import numpy as np

from lope.core.checks import at_least, between
from lope.core.errors import SettingError
from lope.learning.bandits.session import BanditSession
from lope.learning.bandits.tally import Forgetting, Tally


@dataclass(frozen=True)
class Exp3:
    """P(i) = (1 - exploration) w_i / sum w + exploration / K, w_i = exp(exploration / K sum of reward / P(i)).

    horizon: sets exploration to min(1, sqrt(K ln K / ((e - 1) horizon))), for which expected regret against the best
    arm in hindsight stays below 2 sqrt((e - 1) horizon K ln K) (corollary 3.2). Otherwise exploration must be given;
    its default is that of 10,000 plays of 10 arms, rounded. A discount or window forgets old gains.
    """

    exploration: float = 0.04
    horizon: int | None = None
    window: int | None = None
    discount: float = 1.0

    def __post_init__(self) -> None:
        between("exploration", self.exploration, 0.0, 1.0)
        if self.exploration == 0.0:
            raise SettingError("exploration must be above 0, or a reward could be divided by a vanishing chance")
        if self.horizon is not None:
            at_least("horizon", self.horizon, 1)
        self.forgetting()

    def open(self, num_arms: int, seed: int = 0) -> BanditSession:
        """A bandit that knows nothing yet."""
        return BanditSession(self, num_arms, seed)

    def forgetting(self) -> Forgetting:
        """How the past fades."""
        return Forgetting(self.window, self.discount)

    def law(self, sums: list[float]) -> list[float]:
        """The probability of each arm, given the sums of importance-weighted gains."""
        num_arms = len(sums)
        explore = self.exploration
        if self.horizon is not None:
            explore = min(1.0, math.sqrt(num_arms * math.log(num_arms) / ((math.e - 1) * self.horizon)))
        rate, top = explore / num_arms, max(sums)
        weights = [math.exp(rate * (gained - top)) for gained in sums]
        share = (1 - explore) / sum(weights)
        return [share * weight + rate for weight in weights]

    def pick(self, tally: Tally, stream: np.random.Generator) -> tuple[int, float]:
        """An arm drawn from the law, and its probability."""
        law = self.law(tally.sums)
        left = stream.random()
        for arm, probability in enumerate(law):
            left -= probability
            if left < 0.0:
                return arm, probability
        return len(law) - 1, law[-1]

    def credit(self, reward: float, probability: float, stream: np.random.Generator) -> float:
        """The importance-weighted gain, an unbiased estimate of what this arm paid now."""
        return reward / probability
