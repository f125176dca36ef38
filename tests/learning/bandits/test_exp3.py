"""EXP3's law by the paper's multiplicative form, its bound, and adversaries that break others."""

import math

import numpy as np
import pytest

from lope.learning import BANDITS
from lope.learning.bandits.exp3 import Exp3
from lope.learning.bandits.session import BanditSession

STEPS = 4000
RUNS = 8


def test_the_law_is_the_papers() -> None:
    explore, bandit = 0.3, BANDITS.make("exp3:exploration=0.3").open(3, seed=0)
    weights = np.ones(3)
    for step in range(50):
        law = (1 - explore) * weights / weights.sum() + explore / 3
        assert bandit._rule.law(bandit.tally.sums) == pytest.approx(law)
        arm, reward = bandit.choose(), (step % 5) / 4
        bandit.learn(arm, reward)
        weights[arm] *= math.exp(explore * (reward / law[arm]) / 3)


def test_a_waiting_play_is_paid_at_the_chance_it_was_chosen_with() -> None:
    bandit = Exp3(exploration=0.5).open(2, seed=0)
    first = bandit.choose()
    for _ in range(30):
        bandit.learn(1 - first, 1.0)  # forced plays: the law moves away from `first`
    bandit.learn(first, 1.0)
    assert bandit.tally.sums[first] == pytest.approx(2.0)  # it was 1/2 then


def bound(steps: int, arms: int) -> float:
    """Auer et al. 2002, corollary 3.2."""
    return 2 * math.sqrt((math.e - 1) * steps * arms * math.log(arms))


def weak_regret(bandit, payoffs: np.ndarray) -> float:
    """Against the best single arm in hindsight; payoffs [T, K]."""
    earned = 0.0
    for row in payoffs.tolist():
        arm = bandit.choose()
        earned += row[arm]
        bandit.learn(arm, row[arm])
    return float(payoffs.sum(axis=0).max() - earned)


def trap_for_ucb1() -> np.ndarray:
    """A deterministic learner can be foreseen: the arm it will play pays 0, the other 1."""
    victim, rows = BANDITS.make("ucb1").open(2), np.ones((STEPS, 2))
    for row in rows:
        arm = victim.choose()
        row[arm] = 0.0
        victim.learn(arm, 0.0)
    return rows


def switch() -> np.ndarray:
    """Arm 0 pays for a quarter of the time, arm 1 for the rest."""
    rows = np.zeros((STEPS, 2))
    rows[: STEPS // 4, 0] = 1.0
    rows[STEPS // 4 :, 1] = 1.0
    return rows


@pytest.mark.parametrize("payoffs", [trap_for_ucb1(), switch()], ids=["trap", "switch"])
def test_exp3_survives_adversaries(payoffs: np.ndarray) -> None:
    regrets = [weak_regret(Exp3(horizon=STEPS).open(2, seed), payoffs) for seed in range(RUNS)]
    assert np.mean(regrets) < bound(STEPS, 2)


def test_others_do_not() -> None:
    assert weak_regret(BANDITS.make("ucb1").open(2), trap_for_ucb1()) > bound(STEPS, 2)
    assert weak_regret(BANDITS.make("epsilon_greedy:epsilon=0").open(2), switch()) > bound(STEPS, 2)


class Unweighted(Exp3):
    """Credits the reward itself: arms played more often look better."""

    def credit(self, reward, probability, stream):
        return reward


def test_gains_without_their_weight_are_noticed() -> None:
    regrets = [weak_regret(BanditSession(Unweighted(horizon=STEPS), 2, seed), switch()) for seed in range(RUNS)]
    assert np.mean(regrets) > bound(STEPS, 2)
