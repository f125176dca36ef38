"""Every registered drafter: re-opening, batch = singles, hard budgets, forks, odd commits."""

import dataclasses
import random
from typing import Any

import pytest

from lope.core.budget import Budget
from lope.core.draft import EMPTY, Draft, Draw, chain
from lope.core.prompt import Prompt
from lope.core.sampling import Sampling
from lope.core.scores import Needs
from lope.core.verdict import Verdict
from lope.drafters import DRAFTERS
from lope.drafters.ngram import NgramDrafter
from lope.models.table import TableModel

WIDE = Budget(12, 6)
GREEDY, SAMPLED = Sampling(), Sampling(temperature=0.8, top_p=0.9)
PROMPT = (0, 1, 2, 0, 1)


@pytest.fixture(params=list(DRAFTERS))
def here(request: pytest.FixtureRequest, place: Any) -> Any:
    return place(request.param)


def verdicts(draft: Draft, chance: random.Random) -> Verdict:
    """A random path of the draft, and one to three tokens more."""
    nodes = [node for node in range(len(draft)) if draft.firsts[node] == node]
    path = draft.path(chance.choice(nodes)) if nodes and chance.random() < 0.7 else ()
    extra = tuple(chance.randrange(6) for _ in range(chance.choice((1, 1, 2, 3))))
    return Verdict(path, tuple(draft.tokens[node] for node in path) + extra)


def agree(kit: Any, one: Any, other: Any, samplings: Any = (GREEDY, SAMPLED)) -> bool:
    """Both propose the same. What reads the target's pass has nothing to say before it, so that is compared after."""
    if not one.place.drafter.needs.layers:
        pairs = [(one, other)]
    else:
        assert len(other.propose(SAMPLED, WIDE)) == 0, "a session that was opened just now has read no pass"
        pairs = []
    pairs.append((one.later(), other.later()))
    return all(
        kit.same_draft(mine.propose(sampling, WIDE), its.propose(sampling, WIDE), one.place.tolerance)
        for mine, its in pairs
        for sampling in samplings
    )


def reopens(kit: Any, here: Any, seed: int, rounds: int = 6) -> None:
    """`open(p)` then `commit(v)` behaves as `open(p + v.tokens)`, also for drafts of others and slices of prompts."""
    chance = random.Random(seed)
    told = here.open(PROMPT)
    for _ in range(rounds):
        draft = told.propose(SAMPLED, WIDE)
        if chance.random() < 0.3:
            draft = chain(tuple(chance.randrange(6) for _ in range(3)))  # another drafter's
        told.hear_nothing(draft)
        told.commit(draft, verdicts(draft, chance))
        if chance.random() < 0.3:
            told.extend(tuple(chance.randrange(6) for _ in range(4)))
        assert agree(kit, told, here.open(told.text))


@pytest.mark.parametrize("seed", range(4))
def test_reopening(kit, here, seed):
    reopens(kit, here, seed)


def test_reopening_beyond_the_context_of_a_small_model(kit, here):
    """Every drafter that is a model holds 64 items; the text grows past that."""
    told = here.open(PROMPT)
    for number in range(40):
        draft = told.propose(SAMPLED, WIDE)
        told.commit(draft, verdicts(draft, random.Random(number)))
        assert agree(kit, told, here.open(told.text), (SAMPLED,))


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_batch_is_singles(kit, here, sampling):
    """Requests of different ages and lengths; one has not heard of a pass yet."""
    texts = [(0, 1, 2), (3, 3, 3, 3), (5,), (1, 2, 1, 2, 1)]

    def asks() -> list[Any]:
        told = [here.open(text) for text in texts]
        told = [one if number == 1 else one.later() for number, one in enumerate(told)]
        return [one.ask(sampling, Budget(4 + number, 3), seed=number) for number, one in enumerate(told)]

    together = here.drafter.propose(asks())
    apart = [here.drafter.propose([one])[0] for one in asks()]
    assert len(together) == len(texts)
    assert all(kit.same_draft(one, other, here.tolerance) for one, other in zip(together, apart, strict=True))
    assert here.drafter.propose([]) == []


@pytest.mark.parametrize("budget", [Budget(0, 0), Budget(0, 5), Budget(5, 0), Budget(1, 9), Budget(9, 1), Budget(3, 2)])
@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_budget_is_a_hard_cap(kit, here, budget, sampling):
    for told in (here.open(PROMPT), here.open(PROMPT).later()):
        draft = told.propose(sampling, budget)
        kit.check_draft(draft, budget, here.drafter.draws(sampling.temperature == 0.0), len(here.drafter.sources))


def test_declarations(here):
    drafter = here.drafter
    assert isinstance(drafter.needs, Needs)
    assert all(isinstance(name, str) for name in drafter.sources)
    assert drafter.draws(True) == {Draw.POINT}
    assert drafter.draws(False) <= frozenset(Draw)
    assert drafter.sampling(GREEDY).temperature == 0.0
    assert drafter.sampling(dataclasses.replace(SAMPLED, repetition_penalty=1.2)).repetition_penalty == 1.2


def forks(kit: Any, here: Any) -> None:
    """Neither copy hears what the other commits."""
    told = here.open(PROMPT)
    told.propose(SAMPLED, WIDE)
    copy = told.fork()
    copy.commit(EMPTY, Verdict((), (5, 4, 5)))
    for one in (told, copy):
        assert agree(kit, one, here.open(one.text), (SAMPLED,))


def test_forks_are_independent(kit, here):
    forks(kit, here)


def test_nothing_committed_changes_nothing(kit, here):
    told = here.open(PROMPT).later()
    before = told.propose(SAMPLED, WIDE)
    told.hear_nothing(before)
    assert kit.same_draft(before, told.propose(SAMPLED, WIDE))


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


def beside_a_table(kit: Any, drafter: Any) -> Any:
    return kit.place(drafter, TableModel(6))


def test_the_mutants_hold_where_they_are_not_wrong(kit):
    reopens(kit, beside_a_table(kit, Wrapped()), 0)
    forks(kit, beside_a_table(kit, Wrapped()))


@pytest.mark.parametrize("mutant", [ForgetsExtraTokens, TrustsNodeNumbers])
def test_mutant_sessions_are_caught(kit, mutant):
    with pytest.raises(AssertionError):
        reopens(kit, beside_a_table(kit, mutant()), 0, rounds=20)


def test_mutant_fork_is_caught(kit):
    with pytest.raises(AssertionError):
        forks(kit, beside_a_table(kit, SharesItsForks()))


class ReadsTheRootForAll(Wrapped):
    """A feature drafter that takes the target's hidden state at the root for those of the accepted path."""

    def __init__(self, drafter: Any) -> None:
        self._drafter = drafter

    def spoil(self, session: Any) -> None:
        commit = session.commit

        def from_the_root(draft: Any, scores: Any, verdict: Verdict) -> None:
            rows = [min(row, scores.context - 1) for row in range(scores.context + len(draft))]
            features = {layer: states[rows] for layer, states in scores.features.items()}
            commit(draft, dataclasses.replace(scores, features=features), verdict)

        session.commit = from_the_root


def test_mutant_features_are_caught(kit, place):
    sound = place("eagle")
    with pytest.raises(AssertionError):
        reopens(kit, kit.place(ReadsTheRootForAll(sound.drafter), sound.target, sound.tolerance), 0, rounds=20)
