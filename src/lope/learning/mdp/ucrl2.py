"""UCRL2 (Jaksch, Ortner, Auer 2010, JMLR 11): optimism over an L1 ball around the observed transitions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lope.core.checks import between
from lope.core.errors import RunError
from lope.learning.mdp.experience import Experience, Plan, Streams

MOST_SWEEPS = 1_000_000  # extended value iteration contracts; a run this long means a span that cannot be reached


@dataclass(frozen=True)
class Ucrl2:
    """Figure 1 of the paper in cost form; confidence is its delta (0.05 in the comparisons of TSDE's authors).

    An episode ends when a pair has been visited as often in it as ever before (at least once).
    """

    confidence: float = 0.05

    def __post_init__(self) -> None:
        between("confidence", self.confidence, 1e-12, 1.0)

    def plan(self, experience: Experience, streams: Streams) -> Plan:
        """The optimistic policy of each run's confidence set, by extended value iteration to span 1 / sqrt(t_k)."""
        visits = np.maximum(1, experience.visits).astype(np.float64)
        num_states, num_actions = visits.shape[1:]
        times = experience.times[:, None, None]
        estimate = experience.moves / visits[..., None]
        radius = np.sqrt(14 * num_states * np.log(2 * num_actions * times / self.confidence) / visits)
        costs = self._lowest_costs(experience, visits)
        policy = _extended_value_iteration(estimate, radius, costs, 1 / np.sqrt(experience.times))
        # nu_k(s, a) >= max(1, N_k(s, a)) ends it after the step; counts are whole, so "above one less" says the same.
        return Plan(policy, experience.visits + visits - 1, np.full(len(streams), np.inf))

    def _lowest_costs(self, experience: Experience, visits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Known costs, or the lower confidence bound; the paper's radius is for [0, 1], that is, for noise of 1/2."""
        if experience.costs is not None:
            return experience.costs
        num_states, num_actions = visits.shape[1:]
        times = experience.times[:, None, None]
        radius = np.sqrt(7 * np.log(2 * num_states * num_actions * times / self.confidence) / (2 * visits))
        lowest: NDArray[np.float64] = experience.cost_sums / visits - 2 * experience.cost_noise * radius
        return lowest.clip(0.0, 1.0)


def _extended_value_iteration(
    estimate: NDArray[np.float64], radius: NDArray[np.float64], costs: NDArray[np.float64], spans: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Greedy optimistic policies [N, S]: estimate [N, S, A, S], radius and costs [N, S, A], spans [N]."""
    policy = np.zeros(costs.shape[:2], dtype=np.int64)
    live = np.arange(len(costs))
    values = np.zeros(costs.shape[:2])
    for _ in range(MOST_SWEEPS):
        ahead = costs + _optimistic_mean(estimate, radius, values)
        change = ahead.min(axis=2) - values
        settled = np.ptp(change, axis=1) < spans
        if settled.any():
            policy[live[settled]] = ahead[settled].argmin(axis=2)
            keep = ~settled
            if not keep.any():
                return policy
            live, ahead, estimate, radius, costs, spans = (
                part[keep] for part in (live, ahead, estimate, radius, costs, spans)
            )
        values = ahead.min(axis=2)
        values -= values.min(axis=1, keepdims=True)
    raise RunError(f"extended value iteration did not reach its span in {MOST_SWEEPS} sweeps")


def _optimistic_mean(
    estimate: NDArray[np.float64], radius: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The smallest mean of `values` [N, S] within L1 distance `radius` of each row: [N, S, A] (Figure 2, for costs).

    Half the radius moves to the cheapest state; what is too much is taken from the dearest states first.
    """
    order = values.argsort(axis=1)
    cheapest_first = np.take_along_axis(estimate, order[:, None, None, :], axis=3)
    cheapest_first[..., 0] = np.minimum(1.0, cheapest_first[..., 0] + radius / 2)
    filled = np.minimum(1.0, np.cumsum(cheapest_first, axis=3))
    rows = np.diff(filled, axis=3, prepend=0.0)
    # A pair never visited has an empty estimate: its whole row is free, so it goes to the cheapest state.
    rows[..., 0] += 1.0 - filled[..., -1]
    mean: NDArray[np.float64] = np.einsum("nsat,nt->nsa", rows, np.take_along_axis(values, order, axis=1))
    return mean
