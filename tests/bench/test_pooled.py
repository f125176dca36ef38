"""The interval of a ratio of sums against scipy's bootstrap of paired data."""

import numpy as np
import pytest
from scipy import stats

from lope.bench.pooled import Pooled


def _ratio(parts: "np.ndarray", wholes: "np.ndarray", axis: int = -1) -> "np.ndarray":
    return parts.sum(axis=axis) / wholes.sum(axis=axis)


def test_the_interval_is_scipys() -> None:
    chance = np.random.default_rng(1)
    wholes = chance.integers(10, 40, 24).astype(float)
    parts = wholes * chance.uniform(1.5, 3.5, 24)
    found = Pooled.of(list(parts), list(wholes), resamples=4000)
    theirs = stats.bootstrap(
        (parts, wholes), _ratio, paired=True, n_resamples=4000, method="percentile", rng=np.random.default_rng(7)
    ).confidence_interval
    assert found is not None
    assert found.value == pytest.approx(parts.sum() / wholes.sum())
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), rel=0.01)


def test_nothing_to_divide_by_has_none_and_prompts_without_passes_are_no_fault() -> None:
    assert Pooled.of([], []) is None
    assert Pooled.of([1.0], [0.0]) is None
    found = Pooled.of([3.0, 0.0], [1.0, 0.0])
    assert found is not None
    assert (found.value, found.low, found.high) == (3.0, 3.0, 3.0)
