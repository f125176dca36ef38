"""Runs side by side are runs alone; regret is what it says; the paper's comparison on RiverSwim."""

import numpy as np
import pytest

from lope.core.errors import LopeError
from lope.learning import MDP_LEARNERS
from lope.learning.mdp.average_cost import optimal_average_cost
from lope.learning.mdp.model import MDP
from lope.learning.mdp.random_mdp import RandomMDP
from lope.learning.mdp.riverswim import RiverSwim
from lope.learning.mdp.simulate import simulate
from lope.learning.trials import Trials, checkpoints


def run(method: str, environment, seeds, steps: int, **settings) -> Trials:
    mdps = [environment.draw(seed) for seed in seeds]
    return simulate(mdps, MDP_LEARNERS.make(method), seeds, steps, checkpoints(steps, 4), **settings)


@pytest.mark.parametrize("method", list(MDP_LEARNERS))
@pytest.mark.parametrize("cost_noise", [0.0, 0.2])
def test_runs_do_not_meet(method: str, cost_noise: float) -> None:
    environment = RandomMDP(cost_noise=cost_noise)
    together = run(method, environment, range(5), 150)
    for seed in range(5):
        alone = run(method, environment, [seed], 150)
        assert alone.regret[0] == pytest.approx(together.regret[seed], abs=1e-12)
        assert alone.episodes[0] == together.episodes[seed]


@pytest.mark.parametrize("method", list(MDP_LEARNERS))
def test_luck_taken_out_leaves_the_mean(method: str) -> None:
    seeds = range(60)
    plain = run(method, RandomMDP(), seeds, 200, realised=True)
    calm = run(method, RandomMDP(), seeds, 200)
    luck = plain.regret[:, -1] - calm.regret[:, -1]
    assert abs(luck.mean()) < 3 * luck.std() / np.sqrt(len(luck))
    assert calm.stderr[-1] < plain.stderr[-1]


def test_realised_regret_is_costs_minus_the_optimum() -> None:
    # One action: the chain is deterministic, so costs are known exactly.
    cycle = MDP(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), np.array([[0.2], [0.8]]))
    trials = simulate([cycle], MDP_LEARNERS.make("tsde"), [0], 7, np.array([1, 2, 7]), realised=True)
    start = trials.regret[0, 0] + 0.5  # the first cost tells where it began
    assert start in (pytest.approx(0.2), pytest.approx(0.8))
    assert trials.regret[0] == pytest.approx([start - 0.5, 0.0, start - 0.5])
    assert trials.optimum == pytest.approx([0.5])


def test_multichain_processes_are_refused() -> None:
    with pytest.raises(LopeError, match="multichain"):
        simulate([MDP(np.eye(2)[:, None, :], np.zeros((2, 1)))], MDP_LEARNERS.make("tsde"), [0], 5, np.array([5]))


def test_as_many_seeds_as_processes() -> None:
    with pytest.raises(LopeError, match="2 seeds"):
        simulate([RiverSwim().draw(0)], MDP_LEARNERS.make("tsde"), [0, 1], 5, np.array([5]))


def test_riverswim_separates_the_methods() -> None:
    # Our notes at 10,000 steps: TSDE 203, doubling only 235 and stuck left, UCRL2 1410 (40, 40 and 10 runs).
    regret = {m: run(m, RiverSwim(), range(8), 10_000) for m in ("tsde", "lazy", "ucrl2")}
    half, full = {m: t.mean[1] for m, t in regret.items()}, {m: t.mean[3] for m, t in regret.items()}
    stuck_left = 0.8 - optimal_average_cost(RiverSwim().draw(0)).gain[0]
    assert (full["lazy"] - half["lazy"]) / 5000 == pytest.approx(stuck_left, rel=0.02)
    assert (full["tsde"] - half["tsde"]) / 5000 < 0.9 * stuck_left
    assert full["ucrl2"] > 4 * full["tsde"]
    assert 100 < full["tsde"] < 350


def test_random_processes_are_learned() -> None:
    # Our notes at 50,000 steps: TSDE 13, UCRL2 667; at 5,000 steps 7 and 83.
    regret = {m: run(m, RandomMDP(), range(12), 5000).mean[-1] for m in ("tsde", "ucrl2")}
    assert regret["tsde"] < 25
    assert regret["ucrl2"] > 5 * regret["tsde"]
