"""The interval of a median against scipy's bootstrap, with the same draws and with others."""

import numpy as np
import pytest
from scipy import stats

from lope.bench.bootstrap import median_interval


@pytest.mark.parametrize("size", [5, 24, 101])
def test_the_same_draws_give_scipys_interval(size: int) -> None:
    values = np.random.default_rng(size).lognormal(0.2, 0.3, size)
    ours = median_interval(list(values), resamples=2000, seed=3)
    theirs = stats.bootstrap(
        (values,), np.median, n_resamples=2000, method="percentile", rng=np.random.default_rng(3)
    ).confidence_interval
    assert ours is not None
    assert ours.median == np.median(values)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)


def test_the_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    chance = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        found = median_interval(list(chance.normal(1.0, 0.2, 41)), resamples=500)
        assert found is not None
        hits += found.low <= 1.0 <= found.high
    assert stats.binomtest(hits, 200, 0.95).pvalue > 1e-3


def test_the_interval_is_the_same_every_time_and_nothing_has_none() -> None:
    assert median_interval([1.0, 2.0, 5.0]) == median_interval([1.0, 2.0, 5.0])
    assert median_interval([]) is None
    single = median_interval([1.5])
    assert single is not None
    assert (single.low, single.median, single.high) == (1.5, 1.5, 1.5)
