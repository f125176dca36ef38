"""epsilon-greedy, constant or falling (epsilon_n-GREEDY of Auer, Cesa-Bianchi, Fischer 2002, figure 3)."""

from dataclasses import dataclass

import numpy as np

from lope.core.checks import above, between
from lope.learning.bandits.session import BanditSession
from lope.learning.bandits.tally import Forgetting, Tally
from lope.learning.bandits.ucb1 import UNKNOWN


@dataclass(frozen=True)
class EpsilonGreedy:
    """With chance epsilon any arm, else the best mean so far (arms never played first; ties to the first arm).

    gap: a lower bound d on the gap between the best arm and the others; epsilon is then min(1, factor K / (d^2 t))
    and regret is logarithmic (theorem 3 asks for factor of at least 5). Waiting plays count as plays.
    """

    epsilon: float = 0.1
    gap: float | None = None
    factor: float = 5.0
    window: int | None = None
    discount: float = 1.0

    def __post_init__(self) -> None:
        between("epsilon", self.epsilon, 0.0, 1.0)
        above("factor", self.factor, 0.0)
        if self.gap is not None:
            above("gap", self.gap, 0.0)
            between("gap", self.gap, 0.0, 1.0)
        self.forgetting()

    def open(self, num_arms: int, seed: int = 0) -> BanditSession:
        """A bandit that knows nothing yet."""
        return BanditSession(self, num_arms, seed)

    def forgetting(self) -> Forgetting:
        """How the past fades."""
        return Forgetting(self.window, self.discount)

    def pick(self, tally: Tally, stream: np.random.Generator) -> tuple[int, float]:
        """Any arm, or the best so far."""
        num_arms = len(tally.counts)
        epsilon = self.epsilon
        if self.gap is not None:
            plays = tally.learned + sum(tally.waiting) + 1
            epsilon = min(1.0, self.factor * num_arms / (self.gap**2 * plays))
        if stream.random() < epsilon:
            return int(stream.integers(num_arms)), 1.0
        best, highest = 0, -1.0
        for arm, count in enumerate(tally.counts):
            if count + tally.waiting[arm] <= 0.0:
                return arm, 1.0
            mean = tally.sums[arm] / count if count > 0.0 else UNKNOWN
            if mean > highest:
                best, highest = arm, mean
        return best, 1.0

    def credit(self, reward: float, probability: float, stream: np.random.Generator) -> float:
        """The reward itself."""
        return reward
