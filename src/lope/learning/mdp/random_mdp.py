"""A random process for every seed: sparse Dirichlet rows, uniform costs (the option of TSDE's authors' code)."""

from dataclasses import dataclass

import numpy as np

from lope.core.checks import above, at_least
from lope.learning.dirichlet import sample_dirichlet
from lope.learning.mdp.model import MDP

STREAM = 71  # keeps the draw of the process apart from the streams of its runs, which share the seed


@dataclass(frozen=True)
class RandomMDP:
    """Rows ~ Dirichlet(concentration), costs ~ U(0, 1); one process per seed: mean regret is Bayesian regret."""

    states: int = 6
    actions: int = 2
    concentration: float = 0.1
    cost_noise: float = 0.0

    def __post_init__(self) -> None:
        at_least("states", self.states, 1)
        at_least("actions", self.actions, 1)
        above("concentration", self.concentration, 0.0)

    def draw(self, seed: int) -> MDP:
        """The process of this seed."""
        stream = np.random.default_rng([seed, STREAM])
        weights = np.full((self.states, self.actions, self.states), self.concentration)
        return MDP(sample_dirichlet(weights, stream), stream.uniform(size=(self.states, self.actions)), self.cost_noise)
