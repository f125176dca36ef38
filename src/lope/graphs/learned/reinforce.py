"""REINFORCE on logits, with either of two baselines.

`standardised` (Jeon et al. 2023, algorithm 1): costs of one graph's samples minus their mean, over max(deviation, 0.1).
`greedy_rollout` (Gagrani et al. 2022, arXiv 2207.05899, appendix C): costs minus that of the greedy order of the best
network so far, over the samples' deviation here, so that one learning rate serves graphs of every size.
Both add c · ∂/∂logits of the mean squared logit.
"""

from dataclasses import dataclass

import numpy as np

from lope.core.checks import at_least
from lope.core.errors import SettingError
from lope.graphs.graph import Floats, Ints
from lope.graphs.learned.problem import Problem


@dataclass(frozen=True)
class Rollout:
    """What one step saw: the gradient of the loss with respect to the logits [n], the samples' costs, the best [n]."""

    gradient: Floats
    mean_cost: float
    least_cost: float
    best_order: Ints


@dataclass(frozen=True)
class Reinforce:
    """Settings of the estimator: samples per graph, baseline (`standardised` or `greedy_rollout`), logit penalty."""

    num_samples: int = 1000
    baseline: str = "standardised"
    penalty: float = 0.001
    least_deviation: float = 0.1

    def __post_init__(self) -> None:
        at_least("num_samples", self.num_samples, 2)
        at_least("penalty", self.penalty, 0)
        if self.baseline not in ("standardised", "greedy_rollout"):
            raise SettingError(f"baseline must be standardised or greedy_rollout, not {self.baseline!r}")

    def rollout(
        self, problem: Problem, logits: Floats, stream: np.random.Generator, greedy_cost: float | None = None
    ) -> Rollout:
        """Sample, cost, and estimate the gradient. `greedy_cost` is the baseline network's, for `greedy_rollout`."""
        orders = problem.sample(logits, self.num_samples, stream)
        costs = problem.costs(orders)
        weights = self.advantages(costs, greedy_cost) / self.num_samples
        gradient = problem.score(logits, orders, weights) + self.penalty * 2.0 * logits / len(logits)
        return Rollout(gradient, float(costs.mean()), float(costs.min()), orders[costs.argmin()])

    def advantages(self, costs: Floats, greedy_cost: float | None = None) -> Floats:
        """[num_samples] how much worse than the baseline each sample is."""
        deviation = max(float(costs.std()), self.least_deviation)
        if self.baseline == "standardised":
            centred: Floats = (costs - costs.mean()) / deviation
            return centred
        if greedy_cost is None:
            raise SettingError("the greedy_rollout baseline needs the cost of the best network's greedy order")
        above_greedy: Floats = (costs - greedy_cost) / deviation
        return above_greedy
