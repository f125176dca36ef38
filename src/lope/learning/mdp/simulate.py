"""Let N learners act in N processes side by side, and count what their ignorance costs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lope.core.errors import UsageError
from lope.learning.mdp.average_cost import optimal_average_cost
from lope.learning.mdp.communication import require_weakly_communicating
from lope.learning.mdp.experience import Experience, MdpLearner
from lope.learning.mdp.model import MDP, stack
from lope.learning.trials import Trials

ENVIRONMENT, LEARNER = 72, 73  # the two streams of a seed: all methods meet the same environment noise


def simulate(
    mdps: Sequence[MDP],
    learner: MdpLearner,
    seeds: Sequence[int],
    steps: int,
    at: NDArray[np.int64],
    *,
    realised: bool = False,
) -> Trials:
    """Run N learners for `steps` steps, run n in mdps[n] with seeds[n]; the result does not depend on its neighbours.

    at: checkpoints [C], increasing, the last one `steps`.
    realised: True gives sum c(s_t, a_t) - t J* as the paper defines it. False (the default) takes from it the
    luck of the transitions, w*(s_{t+1}) - E[w*(s_{t+1}) | s_t, a_t], a martingale of mean zero: the same mean over
    seeds, with a standard error several times smaller where most of the spread is luck.
    Raises UsageError for a process that is not weakly communicating (J* would depend on the start).
    """
    if len(mdps) != len(seeds):
        raise UsageError(f"{len(seeds)} seeds need as many processes, not {len(mdps)}")
    for mdp in {id(mdp): mdp for mdp in mdps}.values():
        require_weakly_communicating(mdp)
    runs = MdpRuns(mdps, seeds, steps, at, realised=realised)
    while runs.unfinished.size:
        runs.episode(learner)
    return runs.trials()


class MdpRuns:
    """N independent runs, each with its own clock: one call plays one episode of every run that has steps left.

    Clocks may differ because runs do not meet; that is what lets one batched solve plan for all of them.
    clock: [N], steps taken. starts: per episode and run, the clock when it began (-1 for a run that was done).
    """

    def __init__(
        self, mdps: Sequence[MDP], seeds: Sequence[int], steps: int, at: NDArray[np.int64], *, realised: bool = False
    ) -> None:
        num_runs = len(seeds)
        transitions, self._costs = stack(mdps)
        cumulative = transitions.cumsum(axis=3)
        # Divided by its last entry, so that no rounding leaves a gap above it for a state of probability zero.
        self._cumulative = cumulative / cumulative[..., -1:]
        self._noise_sd, self._steps = mdps[0].cost_noise, steps
        solved = {id(mdp): optimal_average_cost(mdp) for mdp in mdps}
        self._optimum = np.array([solved[id(mdp)].gain[0] for mdp in mdps])
        self._values = np.stack([solved[id(mdp)].values[0] * (not realised) for mdp in mdps])
        expected = (transitions @ self._values[:, None, :, None])[..., 0]
        self._loss = self._costs - self._optimum[:, None, None] + expected
        worlds = [np.random.default_rng([seed, ENVIRONMENT]) for seed in seeds]
        self._learners = [np.random.default_rng([seed, LEARNER]) for seed in seeds]
        self._state = np.array([world.integers(mdps[0].num_states) for world in worlds])
        self._uniform = np.stack([world.random(steps) for world in worlds])
        self._noise = np.stack([_noise(world, mdp, steps) for world, mdp in zip(worlds, mdps, strict=True)])
        self._bucket = np.searchsorted(at, np.arange(1, steps + 1))
        self._lost = np.zeros((num_runs, len(at)))
        self._visits = np.zeros(self._costs.shape, dtype=np.int64)
        self._moves = np.zeros(transitions.shape, dtype=np.int64)
        self._cost_sums = np.zeros(self._costs.shape)
        self._previous = np.zeros(num_runs, dtype=np.int64)
        self.clock = np.zeros(num_runs, dtype=np.int64)
        self.starts: list[NDArray[np.int64]] = []

    @property
    def unfinished(self) -> NDArray[np.int64]:
        """The runs that have steps left."""
        return np.flatnonzero(self.clock < self._steps)

    def episode(self, learner: MdpLearner) -> None:
        """Plan, then act until a stopping rule of the plan fires, in every unfinished run."""
        runs = self.unfinished
        began = self.clock.copy()
        plan = learner.plan(self._experience(runs), [self._learners[run] for run in runs])
        policy = np.zeros(self._costs.shape[:2], dtype=np.int64)
        most_visits = np.zeros(self._costs.shape)
        end = np.zeros(len(self.clock))
        policy[runs], most_visits[runs] = plan.policy, plan.most_visits
        end[runs] = np.minimum(began[runs] + plan.longest, self._steps)
        self.starts.append(np.where(began < self._steps, began, -1))
        active = runs
        while active.size:
            over = self._step(active, policy, most_visits, end)
            if over.any():
                active = active[~over]
        self._previous[runs] = (self.clock - began)[runs]

    def trials(self) -> Trials:
        """Regret, J* and the number of episodes of every run."""
        return Trials(self._lost.cumsum(axis=1), self._optimum, (np.stack(self.starts) >= 0).sum(axis=0))

    def _experience(self, runs: NDArray[np.int64]) -> Experience:
        return Experience(
            times=self.clock[runs] + 1,
            visits=self._visits[runs],
            moves=self._moves[runs],
            cost_sums=self._cost_sums[runs],
            costs=self._costs[runs] if self._noise_sd == 0 else None,
            cost_noise=self._noise_sd,
            previous=self._previous[runs],
        )

    def _step(
        self,
        runs: NDArray[np.int64],
        policy: NDArray[np.int64],
        most_visits: NDArray[np.float64],
        end: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        """One step of the given runs; True where the episode is over."""
        states, clock = self._state[runs], self.clock[runs]
        actions = policy[runs, states]
        pairs = (runs, states, actions)
        arrived = (self._cumulative[pairs] <= self._uniform[runs, clock, None]).sum(axis=1)
        self._lost[runs, self._bucket[clock]] += self._loss[pairs] - self._values[runs, arrived]
        self._cost_sums[pairs] += self._costs[pairs] + self._noise[runs, clock % self._noise.shape[1]]
        self._visits[pairs] += 1
        self._moves[runs, states, actions, arrived] += 1
        self._state[runs] = arrived
        self.clock[runs] = clock + 1
        over: NDArray[np.bool_] = (self._visits[pairs] > most_visits[pairs]) | (clock + 1 >= end[runs])
        return over


def _noise(world: np.random.Generator, mdp: MDP, steps: int) -> NDArray[np.float64]:
    """What is added to each step's observed cost: [steps], or a single zero where costs are known."""
    return world.standard_normal(steps) * mdp.cost_noise if mdp.cost_noise > 0 else np.zeros(1)
