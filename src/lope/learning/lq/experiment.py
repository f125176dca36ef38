"""Regret of LQ learners on one system, over many seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lope.learning import LQ_LEARNERS
from lope.learning.lq.simulate import simulate
from lope.learning.lq.system import LinearSystem
from lope.learning.trials import Trials


class LqEnvironment(Protocol):
    """Where a system comes from."""

    def build(self) -> LinearSystem:
        """The system."""
        ...


@dataclass(frozen=True)
class LqExperiment:
    """Runs controllers by name; `realised` as in `simulate`."""

    environment: LqEnvironment
    realised: bool = False

    def check(self, method: str) -> None:
        """Raises what is wrong with a learner's name or settings, or with the system, before anything runs."""
        LQ_LEARNERS.make(method)
        self.environment.build()

    def run(self, method: str, seeds: Sequence[int], steps: int, at: NDArray[np.int64]) -> Trials:
        """All seeds side by side."""
        phases = [(steps, self.environment.build())]
        return simulate(phases, LQ_LEARNERS.make(method), seeds, at, realised=self.realised)
