"""Plackett-Luce: probabilities sum to one, are those of Gumbel-top-k, and have the gradient that is claimed."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from lope.graphs.learned.plackett_luce import greedy_order, log_probabilities, weighted_score
from lope.graphs.schedules.gumbel import gumbel_orders

LOGITS = np.array([0.3, -1.2, 2.0, 0.0, 0.9, -0.4])


def all_orders(n: int) -> np.ndarray:
    return np.array(list(itertools.permutations(range(n))))


def by_definition(logits: np.ndarray, order: np.ndarray) -> float:
    """The product of softmaxes over what is left, term by term."""
    left, found = list(range(len(logits))), 0.0
    for node in order:
        found += logits[node] - math.log(sum(math.exp(logits[other]) for other in left))
        left.remove(node)
    return found


def without_the_reversal(logits: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Mutant: the running sum goes forwards."""
    chosen = logits[orders]
    return (chosen - np.log(np.cumsum(np.exp(chosen), axis=1))).sum(axis=1)


@pytest.mark.parametrize("n", range(1, 7))
def test_probabilities_of_all_orders_sum_to_one(n: int) -> None:
    orders = all_orders(n)
    found = log_probabilities(LOGITS[:n], orders)
    assert np.exp(found).sum() == pytest.approx(1.0, abs=1e-12)
    assert found == pytest.approx([by_definition(LOGITS[:n], order) for order in orders])


def test_mutant_without_the_reversal_has_other_probabilities() -> None:
    orders = all_orders(5)
    wrong = without_the_reversal(LOGITS[:5], orders)
    right = [by_definition(LOGITS[:5], order) for order in orders]
    assert np.abs(wrong - right).max() > 0.5
    # Read backwards it is again a distribution, so the sum over all orders alone would not catch it.
    assert np.exp(wrong).sum() == pytest.approx(1.0, abs=1e-9)


def test_gumbel_orders_have_these_frequencies() -> None:
    logits, count = LOGITS[:4], 40_000
    orders = all_orders(4)
    keys = {tuple(order): index for index, order in enumerate(orders.tolist())}
    drawn = gumbel_orders(logits, count, np.random.default_rng(0))
    seen = np.bincount([keys[tuple(row)] for row in drawn.tolist()], minlength=len(orders))
    expected = count * np.exp(log_probabilities(logits, orders))
    assert chisquare(seen, expected).pvalue > 1e-4
    wrong = count * np.exp(without_the_reversal(logits, orders))
    assert chisquare(seen, wrong * seen.sum() / wrong.sum()).pvalue < 1e-6


def test_score_is_the_gradient_of_the_log_probability() -> None:
    orders = gumbel_orders(LOGITS, 5, np.random.default_rng(1))
    weights = np.array([0.5, -1.0, 2.0, 0.1, -0.3])
    score = weighted_score(LOGITS, orders, weights)
    for node in range(len(LOGITS)):
        step = np.zeros(len(LOGITS))
        step[node] = 1e-5
        change = log_probabilities(LOGITS + step, orders) - log_probabilities(LOGITS - step, orders)
        assert score[node] == pytest.approx(weights @ change / 2e-5, abs=1e-7)


def test_a_wide_span_of_logits_stays_finite() -> None:
    logits = np.linspace(-150, 150, 40)
    orders = gumbel_orders(logits, 3, np.random.default_rng(0))
    assert np.isfinite(log_probabilities(logits, orders)).all()
    assert np.isfinite(weighted_score(logits, orders, np.ones(3))).all()


def test_greedy_is_the_most_likely_order_and_ties_go_to_the_smaller_node() -> None:
    orders = all_orders(6)
    best = orders[log_probabilities(LOGITS, orders).argmax()]
    assert greedy_order(LOGITS).tolist() == best.tolist()
    assert greedy_order([1.0, 2.0, 2.0]).tolist() == [1, 2, 0]
