"""Every registered drafter: re-opening, batch = singles, hard budgets, forks, odd commits."""

import dataclasses
import random
from typing import Any

import pytest

from lope.core.budget import Budget
from lope.core.draft import EMPTY, Draft, Draw, chain
from lope.core.prompt import Path, Prompt
from lope.core.sampling import Sampling
from lope.core.scores import Needs
from lope.core.verdict import NOTHING, Verdict
from lope.drafters import DRAFTERS
from lope.drafters.ngram import NgramDrafter

# What a drafter with required settings is built from. A new one must be named here.
SETTINGS = {"model": "model:path=small", "truncated": "truncated:layers=1"}
WIDE = Budget(12, 6)
GREEDY, SAMPLED = Sampling(), Sampling(temperature=0.8, top_p=0.9)
PROMPT = (0, 1, 2, 0, 1)
SCORES: Any = None  # no drafter of this table looks at them


@pytest.fixture(params=list(DRAFTERS))
def drafter(request: pytest.FixtureRequest, kit: Any) -> Any:
    return DRAFTERS.make(SETTINGS.get(request.param, request.param)).attach(kit.workshop())


def propose(
    kit: Any, drafter: Any, session: Any, text: Path, sampling: Sampling = SAMPLED, budget: Budget = WIDE
) -> Draft:
    """What a session proposes at the end of `text`."""
    own = drafter.sampling(sampling)
    [draft] = drafter.propose([kit.ask(session, budget=budget, sampling=own, prompt=text)])
    return draft


def verdicts(draft: Draft, chance: random.Random) -> Verdict:
    """A random path of the draft, and one to three tokens more."""
    nodes = [node for node in range(len(draft)) if draft.firsts[node] == node]
    path = draft.path(chance.choice(nodes)) if nodes and chance.random() < 0.7 else ()
    extra = tuple(chance.randrange(6) for _ in range(chance.choice((1, 1, 2, 3))))
    return Verdict(path, tuple(draft.tokens[node] for node in path) + extra)


def reopens(kit: Any, drafter: Any, seed: int, rounds: int = 6) -> None:
    """`open(p)` then `commit(v)` behaves as `open(p + v.tokens)`, also for drafts of others and slices of prompts."""
    chance = random.Random(seed)
    session, text = drafter.open(Prompt(PROMPT), None), PROMPT
    for _ in range(rounds):
        draft = propose(kit, drafter, session, text)
        if chance.random() < 0.3:
            draft = chain(tuple(chance.randrange(6) for _ in range(3)))  # another drafter's
        verdict = verdicts(draft, chance)
        session.commit(draft, SCORES, NOTHING)
        session.commit(draft, SCORES, verdict)
        text += verdict.tokens
        if chance.random() < 0.3:
            turn = tuple(chance.randrange(6) for _ in range(4))
            session.extend(Prompt(turn))
            text += turn
        for sampling in (GREEDY, SAMPLED):
            fresh = drafter.open(Prompt(text), None)
            assert kit.same_draft(
                propose(kit, drafter, session, text, sampling), propose(kit, drafter, fresh, text, sampling)
            )


@pytest.mark.parametrize("seed", range(4))
def test_reopening(kit, drafter, seed):
    reopens(kit, drafter, seed)


def test_reopening_beyond_the_context_of_a_small_model(kit, drafter):
    """Every model of the workshop holds 64 items; the text grows past twice that."""
    session, text = drafter.open(Prompt(PROMPT), None), PROMPT
    for number in range(40):
        draft = propose(kit, drafter, session, text)
        verdict = verdicts(draft, random.Random(number))
        session.commit(draft, SCORES, verdict)
        text += verdict.tokens
        fresh = drafter.open(Prompt(text), None)
        assert kit.same_draft(propose(kit, drafter, session, text), propose(kit, drafter, fresh, text))


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_batch_is_singles(kit, drafter, sampling):
    texts = [(0, 1, 2), (3, 3, 3, 3), (5,), (1, 2, 1, 2, 1)]
    own = drafter.sampling(sampling)

    def asks() -> list[Any]:
        return [
            kit.ask(
                drafter.open(Prompt(text), None), budget=Budget(4 + number, 3), sampling=own, prompt=text, seed=number
            )
            for number, text in enumerate(texts)
        ]

    together = drafter.propose(asks())
    apart = [drafter.propose([one])[0] for one in asks()]
    assert len(together) == len(texts)
    assert all(kit.same_draft(one, other) for one, other in zip(together, apart, strict=True))
    assert drafter.propose([]) == []


@pytest.mark.parametrize("budget", [Budget(0, 0), Budget(0, 5), Budget(5, 0), Budget(1, 9), Budget(9, 1), Budget(3, 2)])
@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_budget_is_a_hard_cap(kit, drafter, budget, sampling):
    draft = propose(kit, drafter, drafter.open(Prompt(PROMPT), None), PROMPT, sampling, budget)
    kit.check_draft(draft, budget, drafter.draws(sampling.temperature == 0.0), len(drafter.sources))


def test_declarations(drafter):
    assert isinstance(drafter.needs, Needs)
    assert all(isinstance(name, str) for name in drafter.sources)
    assert drafter.draws(True) == {Draw.POINT}
    assert drafter.draws(False) <= frozenset(Draw)
    assert drafter.sampling(GREEDY).temperature == 0.0
    assert drafter.sampling(dataclasses.replace(SAMPLED, repetition_penalty=1.2)).repetition_penalty == 1.2


def forks(kit: Any, drafter: Any) -> None:
    """Neither copy hears what the other commits."""
    session = drafter.open(Prompt(PROMPT), None)
    propose(kit, drafter, session, PROMPT)
    copy = drafter.fork(session, None)
    copy.commit(EMPTY, SCORES, Verdict((), (5, 4, 5)))
    for text, one in ((PROMPT, session), ((*PROMPT, 5, 4, 5), copy)):
        fresh = drafter.open(Prompt(text), None)
        assert kit.same_draft(propose(kit, drafter, one, text), propose(kit, drafter, fresh, text))


def test_forks_are_independent(kit, drafter):
    forks(kit, drafter)


def test_nothing_committed_changes_nothing(kit, drafter):
    session = drafter.open(Prompt(PROMPT), None)
    before = propose(kit, drafter, session, PROMPT)
    session.commit(before, SCORES, NOTHING)
    assert kit.same_draft(before, propose(kit, drafter, session, PROMPT))


class Wrapped:
    """An n-gram drafter with a fault in its sessions."""

    def __init__(self) -> None:
        self._drafter = NgramDrafter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._drafter, name)

    def open(self, prompt: Prompt, beside: object) -> Any:
        session = self._drafter.open(prompt, beside)
        self.spoil(session)
        return session

    def spoil(self, session: Any) -> None:
        pass


class ForgetsExtraTokens(Wrapped):
    """Commits the path and one token; text that was never drafted is lost."""

    def spoil(self, session: Any) -> None:
        commit = session.commit
        session.commit = lambda draft, scores, verdict: commit(
            draft, scores, Verdict(verdict.path, verdict.tokens[: len(verdict.path) + 1])
        )


class TrustsNodeNumbers(Wrapped):
    """Takes the accepted tokens from its own last draft by node number."""

    def propose(self, asks: Any) -> Any:
        drafts = self._drafter.propose(asks)
        for one, draft in zip(asks, drafts, strict=True):
            one.session.last = draft
        return drafts

    def spoil(self, session: Any) -> None:
        commit = session.commit

        def by_number(draft: Any, scores: Any, verdict: Verdict) -> None:
            known = [session.last.tokens[node] for node in verdict.path if node < len(session.last)]
            commit(draft, scores, Verdict((), (*known, *verdict.tokens[len(verdict.path) :])))

        session.commit = by_number


class SharesItsForks(Wrapped):
    def fork(self, session: Any, beside: object) -> Any:
        return session


def test_the_mutants_hold_where_they_are_not_wrong(kit):
    reopens(kit, Wrapped(), 0)
    forks(kit, Wrapped())


@pytest.mark.parametrize("mutant", [ForgetsExtraTokens, TrustsNodeNumbers])
def test_mutant_sessions_are_caught(kit, mutant):
    with pytest.raises(AssertionError):
        reopens(kit, mutant(), 0, rounds=20)


def test_mutant_fork_is_caught(kit):
    with pytest.raises(AssertionError):
        forks(kit, SharesItsForks())
