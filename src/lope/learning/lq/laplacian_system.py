"""The marginally unstable graph Laplacian of Dean et al. 2018 (arXiv:1805.09388; modestyachts/robust-adaptive-lqr)."""

from dataclasses import dataclass

import numpy as np

from lope.learning.lq.system import LinearSystem


@dataclass(frozen=True)
class LaplacianSystem:
    """Three nodes in a line, each growing by 1 % a step and pulling its neighbours; B = I, Q = 10 I, R = I."""

    def build(self) -> LinearSystem:
        """The system."""
        state_map = 1.01 * np.eye(3) + 0.01 * (np.eye(3, k=1) + np.eye(3, k=-1))
        return LinearSystem(state_map, np.eye(3), 10 * np.eye(3), np.eye(3))
