"""Bayesian linear regression of N systems at once, one observation at a time (the update of arXiv:1709.04047)."""

import numpy as np

from lope.learning.lq.system import Matrix


class Posterior:
    """theta' = [A B]; column i, which predicts x'(i), is N(mean[:, i], S): one covariance S for all columns.

    mean: [N, d, n] with d = n + m. root: [N, d, d], S = root root'. log_det: [N], of S.
    """

    def __init__(self, mean: Matrix, root: Matrix, noise: float) -> None:
        self.mean = mean
        self.root = root
        self.log_det: Matrix = 2 * np.linalg.slogdet(root)[1]
        self._variance = noise**2

    @property
    def covariance(self) -> Matrix:
        """S, [N, d, d]."""
        covariance: Matrix = self.root @ self.root.swapaxes(1, 2)
        return covariance

    def update(self, z: Matrix, arrived: Matrix) -> None:
        """Learn from z = (x, u) [N, d] and the next state [N, n].

        mean += S z (x' - mean' z)' / (noise^2 + z'Sz), S -= S z z' S / (noise^2 + z'Sz), the latter on the root
        (Potter 1963; Maybeck 1979, section 7.3): a state of an unstable system may be 1e9, and plain subtraction
        would then leave S with a negative direction. log det S follows from the matrix determinant lemma.
        """
        turned = (z[:, None, :] @ self.root)[:, 0]
        spread = (self.root @ turned[..., None])[..., 0]
        total = self._variance + (turned * turned).sum(axis=1)
        surprise = arrived - (z[:, None, :] @ self.mean)[:, 0]
        self.mean = self.mean + spread[:, :, None] * (surprise / total[:, None])[:, None, :]
        share = 1 / (total + np.sqrt(total * self._variance))
        self.root = self.root - (share[:, None] * spread)[:, :, None] * turned[:, None, :]
        self.log_det = self.log_det - np.log(total / self._variance)

    def restart(self, fresh: "Posterior") -> None:
        """Forget everything."""
        self.mean, self.root, self.log_det = fresh.mean, fresh.root, fresh.log_det
