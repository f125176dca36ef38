"""Every registered policy: one budget for each request, and nothing learnt from a round that was not its own doing."""

import dataclasses
from typing import Any

import pytest

from lope.core.budget import Budget, Round, Situation, Times
from lope.policies import POLICIES


@pytest.fixture(params=list(POLICIES))
def policy(request: pytest.FixtureRequest) -> Any:
    return POLICIES.make(request.param)


def situation(request: int = 0, recent: tuple[Round, ...] = (), greedy: bool = True) -> Situation:
    return Situation(request, 100, 900, greedy, recent)


def whole(asked: Budget, request: int = 0) -> Round:
    """A round whose chain filled its budget and was accepted whole."""
    depth = min(asked.depth, asked.nodes, 60)
    path = tuple(range(depth))
    return Round(
        request, asked, asked, tuple(range(-1, depth - 1)), (0,) * depth, path, depth + 1,
        cut=False, prompt=False, requests=1, rows=depth + 1, times=Times(0.01, 0.02, 0.001, 0.001),
    )  # fmt: skip


def play(policy: Any, records: list[Round]) -> Budget:
    """The budget chosen after one request's rounds; the policy has chosen and learnt each of them."""
    recent: tuple[Round, ...] = ()
    for record in records:
        policy.choose([situation(record.request, recent)])
        policy.learn([record])
        recent += (record,)
    [budget] = policy.choose([situation(0, recent)])
    return budget


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
    asked = budgets[0]
    before = play(make(), [])
    record = whole(asked)
    clamped = Budget(min(asked.nodes, 2), min(asked.depth, 2), asked.stop, asked.source, asked.ticket)
    spoilt = {
        "clamped": dataclasses.replace(whole(clamped), asked=asked, granted=clamped),
        "cut": dataclasses.replace(record, cut=True),
        "prompt": dataclasses.replace(record, prompt=True),
    }
    for name, spoiled in spoilt.items():
        after = play(make(), [spoiled] * 3)
        assert (after.nodes, after.depth) == (before.nodes, before.depth), f"a {name} round must not count"


@pytest.mark.parametrize("name", list(POLICIES))
def test_policy_keeps_the_contract(name):
    obeys(lambda: POLICIES.make(name))


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
