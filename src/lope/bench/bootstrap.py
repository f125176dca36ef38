"""How sure a median is: the percentile bootstrap (Efron 1979)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Interval:
    """A median and the bounds between which it lies with 95 % confidence."""

    median: float
    low: float
    high: float


def median_interval(values: Sequence[float], *, resamples: int = 5000, seed: int = 0) -> Interval | None:
    """The median with its 95 % percentile-bootstrap interval; None of nothing. The same values give the same bounds."""
    if not values:
        return None
    sample = np.asarray(values, dtype=np.float64)
    chosen = np.random.default_rng(seed).integers(0, len(sample), (resamples, len(sample)))
    low, high = np.percentile(np.median(sample[chosen], axis=1), [2.5, 97.5])
    return Interval(float(np.median(sample)), float(low), float(high))
