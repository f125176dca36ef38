"""Every registered policy: one budget for each request, and nothing learnt from a round that was not its own doing."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from lope.core.budget import Budget, Round, Situation, Times
from lope.core.cost import Calibration, CostCurve
from lope.policies import POLICIES

# a machine on which sixteen rows cost as much as one, and drafting a little
FLAT = Calibration(
    (64,), (CostCurve((1, 16, 64), (0.02, 0.02, 0.04)),), 0.001, CostCurve((1, 8), (0.001, 0.008)), tuple(range(9))
)


def make(name: str) -> Any:
    """A policy fresh from its settings."""
    return POLICIES.make(name).attach(lambda: FLAT)


@pytest.fixture(params=list(POLICIES))
def policy(request: pytest.FixtureRequest) -> Any:
    return make(request.param)


def situation(request: int = 0, recent: tuple[Round, ...] = (), greedy: bool = True) -> Situation:
    return Situation(request, 100, 900, greedy, recent)


def whole(asked: Budget, request: int = 0) -> Round:
    """A round whose chain filled its budget and was accepted whole."""
    depth = min(asked.depth, asked.nodes, 60)
    path = tuple(range(depth))
    return Round(
        request, asked, asked, tuple(range(-1, depth - 1)), (0,) * depth, path, depth + 1,
        cut=False, prompt=False, requests=1, rows=depth + 1, times=Times(0.001 * depth, 0.02, 0.001, 0.0),
    )  # fmt: skip


def play(policy: Any, spoil: Callable[[Round], Round], count: int) -> Budget:
    """The budget chosen after a request's prompt and `count` rounds that were accepted whole, each spoilt."""
    recent: tuple[Round, ...] = ()
    for played in range(1 + count):
        [asked] = policy.choose([situation(0, recent)])
        record = spoil(whole(asked)) if played else dataclasses.replace(whole(asked), prompt=True)
        policy.learn([record])
        recent += (record,)
    [budget] = policy.choose([situation(0, recent)])
    return budget


def clamped(record: Round) -> Round:
    """The same round, had the context left room for one token less."""
    less = min(record.asked.depth, 60) - 1
    granted = dataclasses.replace(record.asked, nodes=less, depth=less)
    return dataclasses.replace(whole(granted), asked=record.asked)


SPOILT: dict[str, Callable[[Round], Round]] = {
    "clamped": clamped,
    "cut": lambda record: dataclasses.replace(record, cut=True),
    "prompt": lambda record: dataclasses.replace(record, prompt=True),
}


def obeys(make: Any) -> None:
    policy = make()
    assert policy.choose([]) == []
    policy.learn([])
    budgets = policy.choose([situation(0), situation(1, greedy=False), situation(2)])
    assert len(budgets) == 3
    for budget in budgets:
        assert isinstance(budget, Budget)
        assert isinstance(budget.nodes, int)
        assert isinstance(budget.depth, int)
        assert budget.nodes >= 0
        assert budget.depth >= 0
    before = play(make(), lambda record: record, 0)
    assert before.nodes > 0, "there is something to spoil"
    for name, spoil in SPOILT.items():
        after = play(make(), spoil, 3)
        assert (after.nodes, after.depth) == (before.nodes, before.depth), f"a {name} round must not count"


@pytest.mark.parametrize("name", list(POLICIES))
def test_policy_keeps_the_contract(name):
    obeys(lambda: make(name))


def test_requests_that_ended_are_forgotten(policy):
    """A thousand requests leave nothing behind that grows with them."""
    for request in range(1000):
        [budget] = policy.choose([situation(request)])
        policy.learn([whole(budget, request)])
    sizes = [len(value) for value in vars(policy).values() if hasattr(value, "__len__")]
    assert max(sizes, default=0) < 100


class RewardsAll:
    """One level more after each accepted draft, whatever ended it."""

    def __init__(self) -> None:
        self._depth = 5

    def choose(self, situations: Any) -> list[Budget]:
        return [Budget(100, self._depth)] * len(situations)

    def learn(self, rounds: Any) -> None:
        self._depth += sum(1 for record in rounds if record.path)


class OneForAll:
    def choose(self, situations: Any) -> list[Budget]:
        return [Budget(100, 5)]

    def learn(self, rounds: Any) -> None:
        pass


@pytest.mark.parametrize("mutant", [RewardsAll, OneForAll])
def test_mutants_are_caught(mutant):
    with pytest.raises(AssertionError):
        obeys(mutant)
