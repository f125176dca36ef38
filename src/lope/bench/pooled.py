"""How sure a ratio of sums is, such as tokens per pass: the percentile bootstrap over prompts (Efron 1979)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Pooled:
    """A ratio of sums, and the bounds between which it lies with 95 % confidence."""

    value: float
    low: float
    high: float

    @classmethod
    def of(
        cls, parts: Sequence[float], wholes: Sequence[float], *, resamples: int = 5000, seed: int = 0
    ) -> "Pooled | None":
        """sum(parts) / sum(wholes), one of each per prompt; None where there is nothing to divide by.

        Prompts are drawn again with both of their numbers. The same numbers give the same bounds.
        """
        above, below = np.asarray(parts, dtype=np.float64), np.asarray(wholes, dtype=np.float64)
        if not len(below) or below.sum() <= 0.0:
            return None
        chosen = np.random.default_rng(seed).integers(0, len(below), (resamples, len(below)))
        sums = below[chosen].sum(axis=1)
        ratios = above[chosen].sum(axis=1)[sums > 0.0] / sums[sums > 0.0]
        low, high = np.percentile(ratios, [2.5, 97.5])
        return cls(float(above.sum() / below.sum()), float(low), float(high))
