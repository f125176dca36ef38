"""Dirichlet draws have the closed-form moments, also where plain gamma draws underflow."""

import numpy as np
import pytest

from lope.learning.dirichlet import sample_dirichlet

DRAWS = 40_000


def check_moments(sampler) -> None:
    weights = np.array([0.1, 0.7, 2.2])
    total = weights.sum()
    draws = sampler(np.tile(weights, (DRAWS, 1)), np.random.default_rng(1))
    mean = weights / total
    variance = mean * (1 - mean) / (total + 1)
    assert draws.mean(axis=0) == pytest.approx(mean, abs=5 * np.sqrt(variance.max() / DRAWS))
    assert draws.var(axis=0) == pytest.approx(variance, rel=0.05)


def test_mean_and_variance() -> None:
    check_moments(sample_dirichlet)


def test_a_power_of_the_wrong_size_is_noticed() -> None:
    def mutant(weights, stream):
        logs = np.log(stream.standard_gamma(weights + 1)) - stream.standard_exponential(weights.shape) / (weights + 1)
        shares = np.exp(logs)
        return shares / shares.sum(axis=-1, keepdims=True)

    with pytest.raises(AssertionError):
        check_moments(mutant)


def test_tiny_concentrations_give_rows_that_sum_to_one() -> None:
    draws = sample_dirichlet(np.full((1000, 6), 1e-4), np.random.default_rng(2))
    assert np.isfinite(draws).all()
    assert draws.sum(axis=1) == pytest.approx(np.ones(1000))
