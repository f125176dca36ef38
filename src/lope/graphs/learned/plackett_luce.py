"""Exact log-probabilities and scores of Plackett-Luce orders, which Gumbel-top-k draws (Jeon et al. 2023, section 3.2).

order = argsort_desc(logits + Gumbel noise),   log P(order) = Σ_i [ logit(v_i) − logsumexp_{j >= i} logit(v_j) ]

The orders themselves come from `lope.graphs.schedules.gumbel.gumbel_orders`.
"""

import numpy as np
from numpy.typing import ArrayLike

from lope.graphs.graph import Floats, Ints


def greedy_order(logits: ArrayLike) -> Ints:
    """[n] the most likely order: logits downwards, ties to the smaller node number."""
    order: Ints = np.argsort(-np.asarray(logits, dtype=np.float64), kind="stable")
    return order


def log_probabilities(logits: ArrayLike, orders: Ints) -> Floats:
    """[num_orders] exact log-probability of each row of `orders`; O(n) a row by a reversed running sum."""
    values = np.asarray(logits, dtype=np.float64)
    values = values - values.max()
    sorted_values = values[orders]
    found: Floats = (sorted_values - np.log(_remaining(np.exp(sorted_values)))).sum(axis=1)
    return found


def weighted_score(logits: ArrayLike, orders: Ints, weights: Floats) -> Floats:
    """[n] the gradient Σ_k weights[k] · ∂ log P(orders[k]) / ∂ logits, in closed form.

    Node v, drawn at place i, adds 1 for its own term and −exp(logit(v)) / Σ_{j' >= j} exp(logit(v_j')) for every place
    j <= i at which it was still to be drawn.
    """
    values = np.asarray(logits, dtype=np.float64)
    odds = np.exp(values - values.max())[orders]
    terms = 1.0 - odds * np.cumsum(1.0 / _remaining(odds), axis=1)
    terms *= weights[:, None]
    score: Floats = np.bincount(orders.ravel(), weights=terms.ravel(), minlength=len(values)).astype(np.float64)
    return score


def _remaining(odds: Floats) -> Floats:
    """[num_orders, n] at each place, the sum of the odds there and after it."""
    sums: Floats = np.cumsum(odds[:, ::-1], axis=1)[:, ::-1]
    return sums
