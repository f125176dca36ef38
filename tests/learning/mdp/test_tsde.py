"""When episodes end: the two rules of the paper on recorded runs, and the authors' aliased array."""

import numpy as np
import pytest

from lope.core.errors import LopeError
from lope.learning.mdp.experience import Experience, Plan, Streams
from lope.learning.mdp.lazy import Lazy
from lope.learning.mdp.linear import Linear
from lope.learning.mdp.riverswim import RiverSwim
from lope.learning.mdp.simulate import MdpRuns
from lope.learning.mdp.tsde import Tsde

STEPS = 600


class Recorded:
    """A learner whose plans are watched: visits at each episode's start, and the policy."""

    def __init__(self, learner) -> None:
        self.learner, self.seen = learner, []

    def plan(self, experience: Experience, streams: Streams) -> Plan:
        plan = self.learner.plan(experience, streams)
        self.seen.append((experience.times.copy(), experience.visits.copy(), plan.policy.copy()))
        return plan


def play(learner, steps: int = STEPS, seed: int = 0) -> tuple[list[int], list[tuple[int, int]]]:
    """The episodes' first steps (from 0) and the pairs (s, a) visited, for one run of RiverSwim."""
    recorded = Recorded(learner)
    runs = MdpRuns([RiverSwim().draw(0)], [seed], steps, np.array([steps]))
    pairs: list[tuple[int, int]] = []
    step_of = runs._step

    def watched(active, policy, most_visits, end):
        state = int(runs._state[0])
        pairs.append((state, int(policy[0, state])))
        return step_of(active, policy, most_visits, end)

    runs._step = watched
    while runs.unfinished.size:
        runs.episode(recorded)
    return [int(start[0]) for start in runs.starts], pairs


def paper_starts(pairs, *, growth: bool = True, doubling: bool = True, aliased: bool = False) -> list[int]:
    """Where episodes start on these pairs, by the paper's two conditions (steps counted from 1 there).

    aliased: the authors' `rho_base = rho`, so that the counts at the episode's start are the counts of now.
    """
    counts = np.zeros((6, 2), dtype=int)
    starts, previous = [0], 0
    base = counts if aliased else counts.copy()
    for step, (state, action) in enumerate(pairs):
        began = starts[-1]
        go_on = (not growth or step <= began + previous) and (not doubling or bool((counts <= 2 * base).all()))
        if step > 0 and not go_on:
            previous = step - began
            starts.append(step)
            base = counts if aliased else counts.copy()
        counts[state, action] += 1
    return starts


@pytest.mark.parametrize("seed", range(3))
def test_episodes_end_by_both_rules(seed: int) -> None:
    starts, pairs = play(Tsde(), seed=seed)
    assert starts == paper_starts(pairs)
    assert starts != paper_starts(pairs, growth=False)
    assert starts != paper_starts(pairs, doubling=False)


def test_lazy_and_linear_are_one_rule_each() -> None:
    starts, pairs = play(Lazy())
    assert starts == paper_starts(pairs, growth=False)
    starts, pairs = play(Linear())
    assert starts == paper_starts(pairs, doubling=False)


def test_the_authors_aliased_array_turns_doubling_off() -> None:
    # mgagrani/TSDE keeps `rho_base = rho`: the counts are compared with themselves and never exceed their double.
    starts, pairs = play(Tsde())
    assert paper_starts(pairs, aliased=True) == paper_starts(pairs, doubling=False)
    assert paper_starts(pairs, aliased=True) != starts

    class Aliased(Tsde):
        def plan(self, experience: Experience, streams: Streams) -> Plan:
            plan = super().plan(experience, streams)
            return Plan(plan.policy, Alias(len(streams)), plan.longest)

    class Alias(np.ndarray):
        """What the rule reads as 2 * counts at the start are twice the counts of now: no count is ever above it."""

        def __new__(cls, runs: int):
            return np.full((runs, 6, 2), np.inf).view(cls)

    assert play(Aliased()) == play(Linear())
    # What it changes: growth alone plans the k-th time after k (k - 1) / 2 steps, both rules more often.
    assert len(paper_starts(pairs, aliased=True)) == 35
    assert len(starts) > 40


def test_linear_episodes_grow_by_one() -> None:
    starts, _ = play(Linear())
    assert np.diff(starts).tolist() == list(range(1, len(starts)))


def mean_of_draws(learner: Tsde, moves: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """The mean of the transition tensors that plan() samples after `moves`."""
    import lope.learning.mdp.tsde as module

    sampled = []
    solve = module.solve_average_cost
    monkeypatch.setattr(module, "solve_average_cost", lambda p, c: sampled.append(p) or solve(p, c))
    runs = 4000
    experience = Experience(
        times=np.ones(runs, dtype=np.int64),
        visits=np.tile(moves.sum(axis=2), (runs, 1, 1)),
        moves=np.tile(moves, (runs, 1, 1, 1)),
        cost_sums=np.zeros((runs, 2, 1)),
        costs=np.zeros((runs, 2, 1)),
        cost_noise=0.0,
        previous=np.zeros(runs, dtype=np.int64),
    )
    learner.plan(experience, [np.random.default_rng(seed) for seed in range(runs)])
    return sampled[0].mean(axis=0)


def test_the_posterior_is_dirichlet(monkeypatch: pytest.MonkeyPatch) -> None:
    moves = np.array([[[3, 1]], [[0, 7]]])
    prior = 0.4
    exact = (moves + prior) / (moves + prior).sum(axis=2, keepdims=True)
    drawn = mean_of_draws(Tsde(prior=prior), moves, monkeypatch)
    assert drawn == pytest.approx(exact, abs=0.01)
    # The mutants it must notice: counts ignored, the prior forgotten, arrivals credited to the wrong state.
    assert mean_of_draws(Tsde(prior=prior), 0 * moves, monkeypatch) != pytest.approx(exact, abs=0.01)
    assert mean_of_draws(Tsde(prior=1e-6), moves, monkeypatch) != pytest.approx(exact, abs=0.01)
    assert mean_of_draws(Tsde(prior=prior), moves[:, :, ::-1], monkeypatch) != pytest.approx(exact, abs=0.01)


def test_unknown_costs_have_the_conjugate_posterior() -> None:
    runs, visits, noise = 4000, np.array([[9, 0]]), 0.3
    experience = Experience(
        times=np.ones(runs, dtype=np.int64),
        visits=np.tile(visits, (runs, 1, 1)),
        moves=np.zeros((runs, 1, 2, 1)),
        cost_sums=np.tile(np.array([[7.2, 0.0]]), (runs, 1, 1)),
        costs=None,
        cost_noise=noise,
        previous=np.zeros(runs, dtype=np.int64),
    )
    drawn = Tsde()._costs(experience, [np.random.default_rng(seed) for seed in range(runs)])
    # N(1/2, noise^2) times nine observations of N(c, noise^2) that sum to 7.2
    assert drawn.mean(axis=0) == pytest.approx(np.array([[(0.5 + 7.2) / 10, 0.5]]), abs=0.02)
    assert drawn.std(axis=0) == pytest.approx(np.array([[noise / np.sqrt(10), noise]]), rel=0.05)


def test_an_episode_must_be_able_to_end() -> None:
    with pytest.raises(LopeError, match="never ends"):
        Tsde(growth=False, doubling=False)
    with pytest.raises(LopeError, match="prior"):
        Tsde(prior=0.0)
