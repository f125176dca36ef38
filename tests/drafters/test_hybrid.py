"""The hybrid drafter: copies where the text repeats itself, else asks the other one."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from lope.core.budget import UNLIMITED, Budget
from lope.core.chance import KeyedChance
from lope.core.draft import Draft, Draw, chain
from lope.core.errors import LopeError, SettingError
from lope.core.prompt import Prompt
from lope.core.protocols import Ask
from lope.core.sampling import Sampling
from lope.core.scores import Needs, Scores
from lope.core.verdict import Verdict
from lope.drafters import DRAFTERS
from lope.drafters.hybrid import CopyingDrafter
from lope.drafters.ngram import NgramDrafter

REPEATING, NEW = Prompt((1, 2, 3, 4, 1, 2)), Prompt((1, 2, 3, 4, 5, 6))


class Other:
    """Says 9 always, and counts what it is told."""

    needs = Needs()
    sources = ("first", "second")

    def __init__(self) -> None:
        self.asked: list[list[Budget]] = []

    def draws(self, greedy: bool) -> frozenset[Draw]:
        return frozenset()

    def sampling(self, request: Sampling) -> Sampling:
        return replace(request, temperature=0.5)

    def open(self, prompt: Prompt, beside: object) -> Any:
        told: list[Any] = [prompt]
        return SimpleNamespace(told=told, extend=told.append, commit=lambda *heard: told.append(heard))

    def fork(self, session: Any, beside: object) -> Any:
        return self.open(Prompt(tuple(session.told[0].ids)), beside)

    def propose(self, asks: Any) -> list[Draft]:
        self.asked.append([ask.budget for ask in asks])
        return [chain((9,), source=1) for _ in asks]


def made(other: Other) -> CopyingDrafter[Any, Any]:
    return CopyingDrafter(NgramDrafter(8, 2), other)


def asks(
    drafter: CopyingDrafter[Any, Any], *prompts: Prompt, depth: int = 3, source: int | None = None
) -> list[Ask[Any]]:
    budget, sampling = Budget(UNLIMITED, depth, source=source), Sampling()
    return [Ask(drafter.open(prompt, None), budget, sampling.begin(prompt), KeyedChance(0, 0, 0)) for prompt in prompts]


def test_copies_where_it_can_and_asks_the_other_for_the_rest_at_once() -> None:
    other = Other()
    drafter = made(other)
    drafts = drafter.propose(asks(drafter, NEW, REPEATING, NEW))
    assert [draft.tokens for draft in drafts] == [(9,), (3, 4), (9,)]
    assert [len(budgets) for budgets in other.asked] == [2]
    assert [drafter.sources[draft.source[0]] for draft in drafts] == ["second", "ngram", "second"]


@pytest.mark.parametrize(
    ("words", "copied"),
    [
        ((1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3), (4, 5, 6)),
        ((1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5), (6, 7, 8, 1)),  # no further than its budget
        ((1, 2, 1, 2, 1), (2, 1, 2)),  # a copy that goes on into itself
        ((1, 2, 3, 1), (9,)),
    ],
)
def test_a_copy_goes_as_far_as_what_was_matched(words: tuple[int, ...], copied: tuple[int, ...]) -> None:
    drafter = made(Other())
    assert [draft.tokens for draft in drafter.propose(asks(drafter, Prompt(words), depth=4))] == [copied]


@pytest.mark.parametrize(("source", "expected"), [(0, ((3, 4), ())), (2, ((9,), (9,)))])
def test_a_policy_may_name_the_source(source: int, expected: tuple[tuple[int, ...], ...]) -> None:
    other = Other()
    drafter = made(other)
    drafts = drafter.propose(asks(drafter, REPEATING, NEW, source=source))
    assert tuple(draft.tokens for draft in drafts) == expected
    inner = [budget.source for budgets in other.asked for budget in budgets]
    assert inner == ([1, 1] if source else []), "counted in the other drafter's own sources"


def test_both_are_told_what_is_said() -> None:
    drafter = made(Other())
    session = drafter.open(NEW, None)
    heard: Any = (chain((9,)), Scores, Verdict((), (3, 4)))
    session.commit(*heard)
    session.extend(Prompt((7, 3, 4)))
    assert session.copied.continuation(2) == (7, 3)
    assert session.inner.told[1] == heard
    assert session.inner.told[2].ids == (7, 3, 4)
    copy = drafter.fork(session, None)
    session.extend(Prompt((8,)))
    assert copy.copied.continuation(2) == (7, 3)


def test_it_draws_as_the_other_one_does() -> None:
    drafter = made(Other())
    assert drafter.sampling(Sampling()).temperature == 0.5
    assert drafter.draws(greedy=False) == {Draw.POINT}


@pytest.mark.parametrize("text", ["hybrid:min_ngram=0", "hybrid:min_ngram=9"])
def test_settings_of_the_copier_are_checked(text: str) -> None:
    with pytest.raises(SettingError):
        DRAFTERS.make(text)


def test_an_unknown_drafter_is_named() -> None:
    workshop: Any = None
    with pytest.raises(LopeError, match=r"eagel.*did you mean 'eagle'"):
        DRAFTERS.make("hybrid:drafter=eagel").attach(workshop)
