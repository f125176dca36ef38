"""Regret of MDP learners on one environment, over many seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lope.learning import MDP_LEARNERS
from lope.learning.mdp.model import MDP
from lope.learning.mdp.simulate import simulate
from lope.learning.trials import Trials


class MdpEnvironment(Protocol):
    """Where processes come from."""

    def draw(self, seed: int) -> MDP:
        """The process of this seed."""
        ...


@dataclass(frozen=True)
class MdpExperiment:
    """Runs learners by name; `realised` as in `simulate`."""

    environment: MdpEnvironment
    realised: bool = False

    def check(self, method: str) -> None:
        """Raises what is wrong with a learner's name or settings, or with the environment, before anything runs."""
        MDP_LEARNERS.make(method)
        self.environment.draw(0)

    def run(self, method: str, seeds: Sequence[int], steps: int, at: NDArray[np.int64]) -> Trials:
        """All seeds side by side."""
        mdps = [self.environment.draw(seed) for seed in seeds]
        return simulate(mdps, MDP_LEARNERS.make(method), seeds, steps, at, realised=self.realised)
