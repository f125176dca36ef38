"""The lean target's sessions: re-opening (law 5), forks, limits, what a pass says of its context."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.lean.random_decoder import VOCABULARY, backend, random_tree, scored, words
from torch import Tensor

from lope.core.draft import EMPTY, ROOT, Draft, chain
from lope.core.errors import UsageError
from lope.core.prompt import Path, Prompt, Span
from lope.core.protocols import Job
from lope.core.scores import ALL, Needs
from lope.core.verdict import NOTHING, Verdict
from lope.models.lean.target import LeanTarget, LeanTargetSession

BACKEND = backend()
SMALL = backend(context=24)


@pytest.fixture(params=[True, False], ids=["path order", "slot order"])
def target(request: pytest.FixtureRequest) -> LeanTarget:
    return BACKEND.target(request.param)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=2e-4, rtol=0)


def committed(target: LeanTarget, session: LeanTargetSession, draft: Draft, node: int, bonus: Path) -> Path:
    """Score, accept the path to `node`, emit `bonus` beyond it; what was emitted."""
    scored(target, session, draft)
    verdict = Verdict(draft.path(node), draft.words(node) + bonus)
    session.commit(draft, verdict)
    return verdict.tokens


@settings(max_examples=25, deadline=None)
@given(
    exact=st.booleans(),
    length=st.integers(1, 140),
    rounds=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 10**6), st.integers(1, 3)), min_size=1, max_size=4),
)
def test_committing_is_re_opening(exact: bool, length: int, rounds: list[tuple[int, int, int]]) -> None:
    """open(p), then any rounds: what follows is what follows open(p + everything emitted)."""
    target = BACKEND.target(exact)
    text = words(length, length)
    session = target.open(Prompt(text))
    for count, seed, beyond in rounds:
        draft = random_tree(count, seed, copies=0.2)
        node = draft.firsts[seed % count] if count and seed % 3 else ROOT
        text += committed(target, session, draft, node, words(beyond, seed))
    after = random_tree(6, length)
    close(scored(target, session, after), scored(target, target.open(Prompt(text)), after))
    assert session.length == len(text)
    assert session.room == BACKEND.context - len(text)


def test_a_commit_without_a_pass_joins_the_prompt(target: LeanTarget) -> None:
    session = target.open(Prompt(words(12)))
    session.commit(EMPTY, Verdict((), (5, 6)))
    assert torch.equal(scored(target, session), scored(target, target.open(Prompt((*words(12), 5, 6)))))


def test_what_is_appended_after_a_pass_is_run_by_the_next(target: LeanTarget) -> None:
    session = target.open(Prompt(words(12)))
    scored(target, session)
    session.extend(Prompt((7, 8)))
    session.commit(EMPTY, Verdict((), (9,)))
    close(scored(target, session), scored(target, target.open(Prompt((*words(12), 7, 8, 9)))))


def test_a_fork_between_a_pass_and_its_commit_has_run_nothing(target: LeanTarget) -> None:
    session = target.open(Prompt(words(12)))
    scored(target, session, chain((1, 2)))
    fork = session.fork()
    fork.commit(EMPTY, Verdict((), (9,)))
    close(scored(target, fork), scored(target, target.open(Prompt((*words(12), 9)))))


def test_scoring_can_be_repeated(target: LeanTarget) -> None:
    session = target.open(Prompt(words(40)))
    draft = random_tree(8, 1)
    first = scored(target, session, draft)
    scored(target, session, random_tree(16, 2))
    assert torch.equal(scored(target, session, draft), first)
    session.commit(draft, NOTHING)
    assert torch.equal(scored(target, session, draft), first), "a verdict of nothing changes nothing"


def test_a_fork_goes_its_own_way(target: LeanTarget) -> None:
    session = target.open(Prompt(words(40)))
    committed(target, session, random_tree(5, 1), 3, (9,))
    alone = scored(target, session.fork())
    fork = session.fork()
    for token in range(130):  # further than the first allocation, so that rows would be seen to move
        scored(target, fork)
        fork.commit(EMPTY, Verdict((), (token % VOCABULARY,)))
    assert torch.equal(scored(target, session), alone)


def test_copies_share_their_firsts_row(target: LeanTarget) -> None:
    draft = random_tree(20, 3, copies=0.6)
    assert len(set(draft.firsts)) < 20
    rows = scored(target, target.open(Prompt(words(9))), draft)
    assert torch.equal(rows[1:], rows[[first + 1 for first in draft.firsts]])


@pytest.mark.parametrize("count", [1, 2, 7, ALL])
def test_the_largest_logits_are_those_of_the_whole_row(target: LeanTarget, count: int) -> None:
    session, draft = target.open(Prompt(words(30))), random_tree(5, 0)
    whole = scored(target, session, draft)
    [scores] = target.score([Job(session, draft, Needs(logits=count))])
    held = scores.logits
    if held.ids is None:
        assert torch.equal(held.values, whole)
        return
    assert torch.equal(held.values, whole.topk(count, dim=-1).values)
    assert torch.equal(whole.gather(-1, held.ids), held.values)
    if held.total is not None:
        close(held.total, whole.logsumexp(-1))


def test_a_pass_delivers_each_row_of_its_context_once(target: LeanTarget) -> None:
    text, draft = words(30), random_tree(5, 0)
    needs = Needs(layers=(0, 2), logits=1, context_logits=VOCABULARY)
    session = target.open(Prompt(text))
    [first] = target.score([Job(session, draft, needs)])
    assert first.context == 30
    assert {layer: tuple(rows.shape) for layer, rows in first.features.items()} == {0: (35, 64), 2: (35, 64)}
    assert first.context_logits is not None
    assert len(first.context_logits) == 29
    for length in (1, 9, 29):
        alone = scored(target, target.open(Prompt(text[:length])))[0]
        close(first.context_logits.dense(length - 1), alone)
    session.commit(draft, Verdict(draft.path(2), (*draft.words(2), 4)))
    [second] = target.score([Job(session, EMPTY, needs)])
    assert second.context == 1
    assert second.context_logits is None
    assert tuple(second.features[2].shape) == (1, 64)


def test_embeddings_stand_in_for_tokens(target: LeanTarget) -> None:
    """A span that carries the embeddings of words is those words."""
    text = words(30)
    span = Span(4, 20, BACKEND.target(False)._decoder.embed(text[4:20]))
    placeholders = (*text[:4], *(0,) * 16, *text[20:])
    draft = random_tree(5, 0)
    seen = scored(target, target.open(Prompt(placeholders, (span,))), draft)
    close(seen, scored(target, target.open(Prompt(text)), draft))


def test_a_context_is_filled_to_its_last_item() -> None:
    target = SMALL.target(exact=True)
    session = target.open(Prompt(words(20)))
    draft = random_tree(30, 1, deep=0.0)
    rows = scored(target, session, draft)
    assert len(rows) == 31, "scratch rows may lie beyond the context"
    node = max(node for node in range(30) if draft.parents[node] == ROOT)
    text = (*words(20), draft.tokens[node], 1, 2, 3)
    session.commit(draft, Verdict((node,), text[20:22]))
    for token in text[22:]:
        scored(target, session)
        session.commit(EMPTY, Verdict((), (token,)))
    assert session.room == 0
    assert torch.equal(scored(target, session), scored(target, target.open(Prompt(text))))


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (words(25), "the prompt has 25 tokens, but the model's context holds 24"),
        ((0, VOCABULARY), f"token {VOCABULARY} is not in the model's vocabulary of {VOCABULARY}"),
        ((0, -1), "token -1 is not in the model's vocabulary"),
    ],
)
def test_a_prompt_that_cannot_be_read_is_refused(ids: Path, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        SMALL.target(exact=False).open(Prompt(ids))


def test_a_turn_that_does_not_fit_leaves_the_session_as_it_was() -> None:
    target = SMALL.target(exact=False)
    session = target.open(Prompt(words(20)))
    with pytest.raises(UsageError, match="5 tokens after 20 items of context"):
        session.extend(Prompt(words(5)))
    assert torch.equal(scored(target, session), scored(target, target.open(Prompt(words(20)))))
