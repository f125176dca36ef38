"""UCB1, UCB-Tuned, D-UCB and SW-UCB against their formulas, written out over whole histories."""

import math
from dataclasses import dataclass

import pytest

from lope.learning import BANDITS
from lope.learning.bandits.session import BanditSession
from lope.learning.bandits.ucb1 import UCB1

ARMS = 3
REWARDS = [0.1, 0.9, 0.35, 1.0, 0.0, 0.6, 0.85, 0.2]


def weights(history, window, discount):
    """The weight of every past play (Garivier and Moulines 2011)."""
    size = len(history)
    if window is not None:
        return [1.0 if age <= window else 0.0 for age in range(size, 0, -1)]
    return [discount ** (age - 1) for age in range(size, 0, -1)]


def formula(history, *, bonus=2.0, window=None, discount=1.0, tuned=False) -> int:
    """argmax over arms of the bound, from the list of (arm, reward)."""
    weight = weights(history, window, discount)
    total = sum(weight)
    bounds = []
    for arm in range(ARMS):
        plays = sum(w for w, (a, _) in zip(weight, history, strict=True) if a == arm)
        if plays == 0:
            return arm
        mean = sum(w * r for w, (a, r) in zip(weight, history, strict=True) if a == arm) / plays
        if tuned:
            second = sum(w * r * r for w, (a, r) in zip(weight, history, strict=True) if a == arm) / plays
            spread = second - mean**2 + math.sqrt(2 * math.log(total) / plays)
            bounds.append(mean + math.sqrt(math.log(total) / plays * min(0.25, spread)))
        else:
            bounds.append(mean + math.sqrt(bonus * math.log(total) / plays))
    return max(range(ARMS), key=lambda arm: (round(bounds[arm], 9), -arm))


def check_follows(bandit, **settings) -> None:
    history: list[tuple[int, float]] = []
    for step in range(120):
        arm = bandit.choose()
        assert arm == formula(history, **settings), step
        history.append((arm, REWARDS[(5 * step + 3 * arm) % len(REWARDS)]))
        bandit.learn(*history[-1])


@pytest.mark.parametrize(
    ("spelling", "settings"),
    [
        ("ucb1", {}),
        ("ucb1:bonus=0.5", {"bonus": 0.5}),
        ("ucb1:window=11", {"window": 11}),
        ("ucb1:discount=0.9", {"discount": 0.9}),
        ("ucb_tuned", {"tuned": True}),
        ("ucb_tuned:discount=0.95", {"tuned": True, "discount": 0.95}),
        ("ucb_tuned:window=15", {"tuned": True, "window": 15}),
    ],
)
def test_it_follows_the_formula(spelling: str, settings) -> None:
    check_follows(BANDITS.make(spelling).open(ARMS), **settings)


@dataclass(frozen=True)
class WrongBonus(UCB1):
    """sqrt(bonus ln t) / n_i: the root over the wrong term."""

    def pick(self, tally, stream):
        total = sum(tally.counts)
        for arm, count in enumerate(tally.counts):
            if count == 0:
                return arm, 1.0
        bounds = [
            s / n + math.sqrt(self.bonus * math.log(total)) / n for s, n in zip(tally.sums, tally.counts, strict=True)
        ]
        return bounds.index(max(bounds)), 1.0


@dataclass(frozen=True)
class NoRoot(UCB1):
    """bonus ln t / n_i."""

    def pick(self, tally, stream):
        total = sum(tally.counts)
        for arm, count in enumerate(tally.counts):
            if count == 0:
                return arm, 1.0
        bounds = [s / n + self.bonus * math.log(total) / n for s, n in zip(tally.sums, tally.counts, strict=True)]
        return bounds.index(max(bounds)), 1.0


@pytest.mark.parametrize("mutant", [WrongBonus(), NoRoot(), UCB1(bonus=1.0), UCB1(discount=0.9)])
def test_a_wrong_bonus_is_noticed(mutant: UCB1) -> None:
    with pytest.raises(AssertionError):
        check_follows(BanditSession(mutant, ARMS, 0))
