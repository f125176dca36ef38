"""Bayesian linear regression of N systems at once, one observation at a time (the update of arXiv:1709.04047)."""

import numpy as np

from lope.learning.lq.system import Matrix


class Posterior:
    """theta' = [A B]; column i, which predicts x'(i), is N(mean[:, i], covariance): one covariance for all columns.

    mean: [N, d, n] with d = n + m. covariance: [N, d, d]. log_det: [N], of the covariance.
    """

    def __init__(self, mean: Matrix, covariance: Matrix, noise: float) -> None:
        self.mean = mean
        self.covariance = covariance
        self.log_det: Matrix = np.linalg.slogdet(covariance)[1]
        self._variance = noise**2

    def update(self, z: Matrix, arrived: Matrix) -> None:
        """Learn from z = (x, u) [N, d] and the next state [N, n].

        mean += S z (x' - mean' z)' / (noise^2 + z'Sz), S -= S z z' S / (noise^2 + z'Sz); log det S by the matrix
        determinant lemma. S z z' S is formed as an outer product of one vector, so S stays symmetric.
        """
        spread = (self.covariance @ z[..., None])[..., 0]
        total = self._variance + (z * spread).sum(axis=1)
        surprise = arrived - (z[:, None, :] @ self.mean)[:, 0]
        direction = spread / np.sqrt(total)[:, None]
        self.mean = self.mean + direction[:, :, None] * (surprise / np.sqrt(total)[:, None])[:, None, :]
        self.covariance = self.covariance - direction[:, :, None] * direction[:, None, :]
        self.log_det = self.log_det - np.log(total / self._variance)

    def restart(self, mean: Matrix, covariance: Matrix) -> None:
        """Forget everything."""
        fresh = Posterior(mean, covariance, self._variance**0.5)
        self.mean, self.covariance, self.log_det = fresh.mean, fresh.covariance, fresh.log_det
