"""The stable 3x3 system of yeoneung/tsld (Comparison_regret.m): the one public setting for PSRL-LQ."""

from dataclasses import dataclass

import numpy as np

from lope.learning.lq.system import LinearSystem


@dataclass(frozen=True)
class PublicSystem:
    """Open-loop stable, Q = 2 I, R = I; J* = 7.99194."""

    def build(self) -> LinearSystem:
        """The system."""
        state_map = np.array([[0.3, 0.1, 0.2], [0.1, 0.4, 0.0], [0.0, 0.7, 0.6]])
        input_map = np.array([[0.5, 0.4, 0.5], [0.6, 0.3, 0.0], [0.3, 0.0, 0.2]])
        return LinearSystem(state_map, input_map, 2 * np.eye(3), np.eye(3))
