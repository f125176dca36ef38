"""Thompson sampling for Gaussian rewards of unknown mean and variance (normal-inverse-gamma posterior)."""

import math
from dataclasses import dataclass

import numpy as np

from lope.core.checks import above
from lope.learning.bandits.session import BanditSession
from lope.learning.bandits.tally import Forgetting, Tally


@dataclass(frozen=True)
class GaussianThompson:
    """Draw each arm's mean from its Student-t posterior, play the best draw (Murphy 2012, section 4.6.3.7).

    Prior: variance ~ InverseGamma(shape, scale), mean | variance ~ N(mean, variance / strength). The defaults are one
    play's worth of a uniform reward (mean 1/2, variance 1/12). scale above 0 matters: with improper priors two equal
    first rewards say "no variance" and an arm is lost for ever (Honda and Takemura 2014, arXiv:1311.1894). Waiting
    plays do not narrow the posterior: each draw is fresh.
    """

    mean: float = 0.5
    strength: float = 1.0
    shape: float = 1.0
    scale: float = 1 / 12
    window: int | None = None
    discount: float = 1.0

    def __post_init__(self) -> None:
        for name in ("strength", "shape", "scale"):
            above(name, getattr(self, name), 0.0)
        self.forgetting()

    def open(self, num_arms: int, seed: int = 0) -> BanditSession:
        """A bandit that knows nothing yet."""
        return BanditSession(self, num_arms, seed)

    def forgetting(self) -> Forgetting:
        """How the past fades."""
        return Forgetting(self.window, self.discount)

    def posterior(self, tally: Tally, arm: int) -> tuple[float, float, float]:
        """Degrees of freedom, centre and width of the Student-t law of the arm's mean."""
        count, total = tally.counts[arm], tally.sums[arm]
        strength = self.strength + count
        centre = (self.strength * self.mean + total) / strength
        shape = self.shape + count / 2
        # scale + (sum x^2 + strength_0 mean_0^2 - strength_n centre^2) / 2, the book's equation 4.212 gathered
        squares = tally.squares[arm] + self.strength * self.mean**2 - strength * centre**2
        scale = self.scale + max(0.0, squares) / 2
        return 2 * shape, centre, math.sqrt(scale / (shape * strength))

    def pick(self, tally: Tally, stream: np.random.Generator) -> tuple[int, float]:
        """The arm with the highest draw."""
        best, highest = 0, -math.inf
        for arm in range(len(tally.counts)):
            freedom, centre, width = self.posterior(tally, arm)
            drawn = centre + width * stream.standard_t(freedom)
            if drawn > highest:
                best, highest = arm, drawn
        return best, 1.0

    def credit(self, reward: float, probability: float, stream: np.random.Generator) -> float:
        """The reward itself."""
        return reward
