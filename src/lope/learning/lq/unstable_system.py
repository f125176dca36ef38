"""The strongly unstable system of the same authors' code (`unstable_dynamics`: diagonal 2, off-diagonal 4)."""

from dataclasses import dataclass

import numpy as np

from lope.learning.lq.system import LinearSystem


@dataclass(frozen=True)
class UnstableSystem:
    """A state doubles in a step when left alone, and drives the next; B = I, Q = 10 I, R = I (arXiv:1805.09388)."""

    def build(self) -> LinearSystem:
        """The system."""
        return LinearSystem(2 * np.eye(3) + 4 * np.eye(3, k=-1), np.eye(3), 10 * np.eye(3), np.eye(3))
