"""Thompson sampling with dynamic episodes (Ouyang, Gagrani, Nayyar, Jain 2017, arXiv:1709.04570)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lope.core.checks import above
from lope.core.errors import SettingError
from lope.learning.dirichlet import sample_dirichlet
from lope.learning.mdp.average_cost import solve_average_cost
from lope.learning.mdp.experience import Experience, Plan, Streams


@dataclass(frozen=True)
class Tsde:
    """Draw a process from the posterior, follow its best policy, until one of two rules ends the episode.

    growth: an episode is at most one step longer than the one before (t <= t_k + T_{k-1}).
    doubling: no state-action count may exceed twice its value at the start (N_t(s, a) <= 2 N_{t_k}(s, a)).
    prior: every row's Dirichlet concentration (0.1 in the code of the authors, mgagrani/TSDE).
    cost_mean, cost_plays: where costs are unknown, their prior N(cost_mean, cost_noise^2 / cost_plays): by default
    one play's worth of the middle of [0, 1].
    """

    prior: float = 0.1
    growth: bool = True
    doubling: bool = True
    cost_mean: float = 0.5
    cost_plays: float = 1.0

    def __post_init__(self) -> None:
        above("prior", self.prior, 0.0)
        above("cost_plays", self.cost_plays, 0.0)
        if not (self.growth or self.doubling):
            raise SettingError("tsde needs growth or doubling, or its first episode never ends")

    def plan(self, experience: Experience, streams: Streams) -> Plan:
        """theta_k ~ posterior at t_k, pi_k = its average-cost optimal policy, and this episode's limits."""
        runs = range(len(streams))
        sampled = np.stack([sample_dirichlet(self.prior + experience.moves[run], streams[run]) for run in runs])
        policy = solve_average_cost(sampled, self._costs(experience, streams)).policy
        visits = experience.visits.astype(np.float64)
        return Plan(
            policy,
            most_visits=2 * visits if self.doubling else np.full_like(visits, np.inf),
            longest=(experience.previous + 1 if self.growth else np.full(len(streams), np.inf)).astype(np.float64),
        )

    def _costs(self, experience: Experience, streams: Streams) -> NDArray[np.float64]:
        """Known costs, or a draw from their posterior: Gaussian with known noise, conjugate prior."""
        if experience.costs is not None:
            return experience.costs
        plays = self.cost_plays + experience.visits
        mean = (self.cost_plays * self.cost_mean + experience.cost_sums) / plays
        noise = np.stack([stream.standard_normal(mean.shape[1:]) for stream in streams])
        sampled: NDArray[np.float64] = mean + noise * experience.cost_noise / np.sqrt(plays)
        return sampled
