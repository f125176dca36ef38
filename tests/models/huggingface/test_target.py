"""The adapter as target: rollback, batches, re-opening, features, slices, pictures, forks."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from tests.models.huggingface.other_families import VOCABULARY
from tests.models.huggingface.reference import EVERYTHING, TOLERANCE, at_once, scored, token_by_token, tree, words
from torch import Tensor

from lope.core.draft import EMPTY, ROOT, Draft, chain
from lope.core.errors import UsageError
from lope.core.prompt import Path, Prompt, Span
from lope.core.protocols import Job
from lope.core.scores import ALL, Needs, Scores
from lope.core.verdict import NOTHING, Verdict
from lope.models.huggingface import HuggingFaceBackend, target
from lope.models.huggingface.sequence_cache import SequenceCache

Adapted = Callable[[str], tuple[Any, HuggingFaceBackend]]
PROMPT = words(11, seed=1)
FEW = ["llama3", "gpt_neox", "opt"]


def difference(left: Tensor, right: Tensor) -> float:
    assert left.shape == right.shape
    return float((left - right).abs().max())


def deepest(draft: Draft) -> Path:
    """The longest path of a draft."""
    return draft.path(max(range(len(draft)), key=lambda node: draft.depths[node]))


def rounds(backend: HuggingFaceBackend, drafts: Sequence[Draft], verdicts: Sequence[Verdict]) -> tuple[Any, Path]:
    """A session that has scored and committed, and the tokens it then holds."""
    scorer = backend.target(False)
    session, held = scorer.open(Prompt(PROMPT)), PROMPT
    for draft, verdict in zip(drafts, verdicts, strict=True):
        scorer.score([Job(session, draft, EVERYTHING)])
        session.commit(draft, verdict)
        held += verdict.tokens
    return session, held


def reopened_difference(backend: HuggingFaceBackend) -> float:
    """Three rounds with accepted tree paths, then one pass, against a fresh session over the same tokens."""
    drafts = [tree(9, seed=2), tree(12, seed=3), chain((5, 6, 7))]
    paths = [deepest(drafts[0]), drafts[1].path(len(drafts[1]) - 1), (0,)]
    verdicts = [
        Verdict(path, (*(draft.tokens[node] for node in path), 17, 18)[: len(path) + 1 + extra])
        for draft, path, extra in zip(drafts, paths, (0, 1, 0), strict=True)
    ]
    session, held = rounds(backend, drafts, verdicts)
    [after] = backend.target(False).score([Job(session, tree(7, seed=9), EVERYTHING)])
    return difference(after.logits.values, scored(backend, held, tree(7, seed=9)).logits.values)


@pytest.mark.parametrize("name", FEW)
def test_a_session_goes_on_as_if_reopened(name: str, adapted: Adapted) -> None:
    assert reopened_difference(adapted(name)[1]) < TOLERANCE


def test_keeping_the_wrong_rows_is_noticed(adapted: Adapted, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SequenceCache.keep

    def first_rows(cache: SequenceCache, kept: Sequence[int]) -> None:
        honest(cache, range(cache.length, cache.length + len(kept)))

    monkeypatch.setattr(SequenceCache, "keep", first_rows)
    assert reopened_difference(adapted("gpt_neox")[1]) > 100 * TOLERANCE


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_whatever_is_rejected_leaves_no_trace(kept: int, adapted: Adapted) -> None:
    draft = tree(9, seed=2)
    path = deepest(draft)[:kept]
    verdict = Verdict(path, (*(draft.tokens[node] for node in path), 3))
    backend = adapted("gpt_neox")[1]
    session, held = rounds(backend, [draft], [verdict])
    [after] = backend.target(False).score([Job(session, EMPTY, EVERYTHING)])
    assert after.context == 1
    assert difference(after.logits.values, at_once(adapted("gpt_neox")[0], held)[0][-1:]) < TOLERANCE


def test_an_accepted_copy_keeps_the_row_of_its_first(adapted: Adapted) -> None:
    draft = tree(9, seed=2)
    assert draft.firsts[2] == 0, "node 2 is a copy"
    model, backend = adapted("llama3")
    session, held = rounds(backend, [draft], [Verdict((2,), (draft.tokens[2], 3))])
    [after] = backend.target(False).score([Job(session, EMPTY, EVERYTHING)])
    assert difference(after.logits.values, at_once(model, held)[0][-1:]) < TOLERANCE


@pytest.mark.parametrize("name", FEW)
def test_a_batch_says_what_each_says_alone(name: str, adapted: Adapted) -> None:
    backend = adapted(name)[1]
    scorer = backend.target(False)
    requests = [(words(23, seed=4), tree(6, seed=4)), (words(1, seed=5), EMPTY), (words(9, seed=6), tree(11, seed=6))]
    sessions = [scorer.open(Prompt(prompt)) for prompt, _ in requests]
    for turn in range(2):
        jobs = [
            Job(session, draft, Needs((1,) if n else (), ALL))
            for n, (session, (_, draft)) in enumerate(zip(sessions, requests, strict=True))
        ]
        for number, (scores, (prompt, draft)) in enumerate(zip(scorer.score(jobs), requests, strict=True)):
            held = prompt + (5, 9) * turn
            assert difference(scores.logits.values, scored(backend, held, draft).logits.values) < TOLERANCE
            assert scores.context == (2 if turn else len(prompt))
            assert set(scores.features) == ({1} if number else set())
        for session, (_, draft) in zip(sessions, requests, strict=True):
            session.commit(draft, Verdict((), (5, 9)))


@pytest.mark.parametrize("name", FEW)
def test_features_are_the_hidden_states_of_transformers(name: str, adapted: Adapted) -> None:
    model, backend = adapted(name)
    draft = tree(9, seed=2)
    scores = scored(backend, PROMPT, draft, Needs((0, 1, 2, 3), 1))
    assert scores.context == len(PROMPT)
    expected = token_by_token(model, PROMPT, draft)[1]
    for layer in range(4):
        assert difference(scores.features[layer], expected[layer]) < TOLERANCE


def test_features_end_at_the_last_layer(adapted: Adapted) -> None:
    with pytest.raises(UsageError, match="no hidden state 4: they are 0 to 3"):
        scored(adapted("llama3")[1], PROMPT, EMPTY, Needs((4,)))


def test_a_long_prompt_runs_in_slices(adapted: Adapted, monkeypatch: pytest.MonkeyPatch) -> None:
    model, backend = adapted("gpt_neox")
    monkeypatch.setattr(target, "SLICE_ROWS", 16)
    prompt, draft = words(75, seed=8), tree(9, seed=2)
    scores = scored(backend, prompt, draft, Needs((1,), ALL, VOCABULARY))
    logits, hidden = at_once(model, prompt)
    assert scores.context == len(prompt)
    assert difference(scores.features[1][: len(prompt)], hidden[1]) < TOLERANCE
    before = scores.context_logits
    assert before is not None
    assert before.ids is not None
    assert len(before) == len(prompt) - 1
    assert difference(before.values, logits[:-1].gather(1, before.ids)) < TOLERANCE
    nodes = range(ROOT, len(draft))
    expected = torch.stack([at_once(model, prompt + draft.words(node))[0][-1] for node in nodes])
    assert difference(scores.logits.values, expected) < TOLERANCE


def test_context_logits_are_the_largest(adapted: Adapted) -> None:
    model, backend = adapted("llama3")
    scores = scored(backend, PROMPT, chain((4, 5)), Needs((), 3, 2))
    assert scores.context_logits is not None
    best = at_once(model, PROMPT)[0].topk(2, dim=-1)
    assert torch.equal(scores.context_logits.ids, best.indices[:-1])
    assert scores.logits.ids is not None
    assert scores.logits.ids.shape == (3, 3)
    assert difference(scores.logits.total, at_once(model, (*PROMPT, 4, 5))[0][-3:].logsumexp(-1)) < TOLERANCE
    assert scored(backend, PROMPT[:1], EMPTY, Needs((), 1, 2)).context_logits is None


def test_a_pass_can_be_repeated_until_commit(adapted: Adapted) -> None:
    backend = adapted("llama3")[1]
    scorer = backend.target(False)
    session = scorer.open(Prompt(PROMPT))
    first, again = (scorer.score([Job(session, draft, EVERYTHING)])[0] for draft in (tree(12, seed=3), tree(9, seed=2)))
    assert first.context == again.context == len(PROMPT)
    session.commit(tree(9, seed=2), NOTHING)
    assert session.room == backend.context - len(PROMPT)
    fresh = scored(backend, PROMPT, tree(9, seed=2))
    assert difference(again.logits.values, fresh.logits.values) < TOLERANCE


def test_a_fork_goes_its_own_way(adapted: Adapted) -> None:
    model, backend = adapted("opt")
    scorer = backend.target(False)
    draft = tree(9, seed=2)
    session, held = rounds(backend, [draft], [Verdict((0,), (draft.tokens[0], 3))])
    twin = session.fork()
    session.extend(Prompt((8, 9)))
    scorer.score([Job(twin, EMPTY, EVERYTHING)])
    twin.commit(EMPTY, Verdict((), (30,)))
    both = scorer.score([Job(session, EMPTY, EVERYTHING), Job(twin, EMPTY, EVERYTHING)])
    for scores, tokens in zip(both, ((8, 9), (30,)), strict=True):
        assert difference(scores.logits.values, at_once(model, held + tokens)[0][-1:]) < TOLERANCE


@pytest.mark.parametrize("name", FEW)
def test_spans_are_embeddings(name: str, adapted: Adapted) -> None:
    """A picture made of the embeddings of words is read as those words."""
    model, backend = adapted(name)
    picture = words(5, seed=3)
    embeddings = model.get_input_embeddings()(torch.tensor(picture)).detach()
    prompt = Prompt((*PROMPT, *(0,) * 5, *PROMPT[:2]), (Span(len(PROMPT), len(PROMPT) + 5, embeddings),))
    for ids, spans in ((prompt.ids, prompt.spans), (prompt.ids[:-2], prompt.spans)):
        scorer = backend.target(False)
        [scores] = scorer.score([Job(scorer.open(Prompt(ids, spans)), tree(9, seed=2), EVERYTHING)])
        plain = scored(backend, PROMPT + picture + ids[len(PROMPT) + 5 :], tree(9, seed=2))
        assert scores.context == len(ids)
        assert difference(scores.logits.values, plain.logits.values) < TOLERANCE


def test_the_context_is_a_bound(adapted: Adapted) -> None:
    backend = adapted("opt")[1]
    scorer = backend.target(False)
    session = scorer.open(Prompt(words(250, seed=1)))
    assert session.room == 6
    with pytest.raises(UsageError, match="7 tokens after 250 items of context, but the model's context holds 256"):
        session.extend(Prompt((1,) * 7))
    with pytest.raises(UsageError, match=f"token {VOCABULARY} is not in the model's vocabulary of {VOCABULARY}"):
        session.extend(Prompt((VOCABULARY,)))
    full = chain(words(6, seed=2))
    scores: Scores = scorer.score([Job(session, full, EVERYTHING)])[0]
    session.commit(full, Verdict((0, 1, 2, 3, 4), full.tokens))
    assert session.room == 0
    assert len(scores.logits) == 7
