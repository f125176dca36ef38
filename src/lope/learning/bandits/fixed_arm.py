"""Always the same arm: the bandit that learns nothing, so that a loop needs no special case."""

from dataclasses import dataclass

import numpy as np

from lope.core.checks import at_least
from lope.core.errors import SettingError
from lope.learning.bandits.session import BanditSession
from lope.learning.bandits.tally import Forgetting, Tally


@dataclass(frozen=True)
class FixedArm:
    """Plays `arm`, whatever it pays; what it pays is counted all the same."""

    arm: int = 0

    def __post_init__(self) -> None:
        at_least("arm", self.arm, 0)

    def open(self, num_arms: int, seed: int = 0) -> BanditSession:
        """A session of that arm. SettingError where there are not so many arms."""
        if self.arm >= num_arms:
            raise SettingError(f"arm must be below the number of arms, {num_arms}, not {self.arm}")
        return BanditSession(self, num_arms, seed)

    def forgetting(self) -> Forgetting:
        """Nothing to forget."""
        return Forgetting()

    def pick(self, tally: Tally, stream: np.random.Generator) -> tuple[int, float]:
        """The arm."""
        return self.arm, 1.0

    def credit(self, reward: float, probability: float, stream: np.random.Generator) -> float:
        """The reward itself."""
        return reward
