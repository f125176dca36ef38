"""The adapter as draft model: growing trees, catching up, and whole answers with both sides adapted."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.models.huggingface.reference import EVERYTHING, TOLERANCE, at_once, tree, words
from torch import Tensor

from lope.core.budget import Budget
from lope.core.chance import KeyedChance
from lope.core.draft import EMPTY, ROOT, Draft
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Ask, Job, Step
from lope.core.sampling import Sampling
from lope.core.scores import Needs
from lope.core.verdict import Verdict
from lope.drafters.autoregressive import AutoregressiveDrafter
from lope.models.huggingface import HuggingFaceBackend, draft_model
from lope.shapes import SHAPES
from lope.stops import STOPS
from lope.verifiers.greedy import GreedyVerifier

Adapted = Callable[[str], tuple[Any, HuggingFaceBackend]]
PROMPT = words(11, seed=1)
FEW = ["llama3", "gpt_neox", "opt"]
NO_SCORES: Any = None


def levels(draft: Draft) -> list[Path]:
    """The frontiers in which a drafter would run a tree: the root, then its nodes that are no copies, by depth."""
    nodes = [node for node in range(len(draft)) if draft.firsts[node] == node]
    return [(ROOT,)] + [
        tuple(n for n in nodes if draft.depths[n] == depth) for depth in range(1, max(draft.depths) + 1)
    ]


def grow(model: Any, session: Any, draft: Draft) -> tuple[dict[int, Tensor], dict[int, Tensor]]:
    """Run a tree level by level: logits [V] and last hidden state [d] by node."""
    logits, hidden = {}, {}
    for frontier in levels(draft):
        [(rows, states)] = model.step([Step(session, draft, frontier)])
        assert states is not None
        for row, node in enumerate(frontier):
            logits[node], hidden[node] = rows.values[row], states[row]
    return logits, hidden


def difference_from_plain(model: Any, context: Path, draft: Draft, logits: dict[int, Tensor]) -> float:
    return max(
        float((values - at_once(model, context + draft.words(node))[0][-1]).abs().max())
        for node, values in logits.items()
    )


@pytest.mark.parametrize("name", FEW)
def test_a_growing_tree_says_what_plain_decoding_says(name: str, adapted: Adapted) -> None:
    model, backend = adapted(name)
    drafter, draft = backend.draft_model(), tree(12, seed=3)
    session = drafter.open(Prompt(PROMPT), NO_SCORES)
    logits, hidden = grow(drafter, session, draft)
    assert difference_from_plain(model, PROMPT, draft, logits) < TOLERANCE
    states = at_once(model, PROMPT + draft.words(5))[1]
    assert float((hidden[5] - states[-1, -1]).abs().max()) < TOLERANCE
    assert drafter.needs == Needs()


@pytest.mark.parametrize("name", FEW)
def test_catching_up_runs_only_what_it_has_not_run(name: str, adapted: Adapted) -> None:
    model, backend = adapted(name)
    drafter, draft = backend.draft_model(), tree(12, seed=3)
    session = drafter.open(Prompt(PROMPT), NO_SCORES)
    held = PROMPT
    for path in (draft.path(11), (0,), ()):
        logits, _ = grow(drafter, session, draft)
        assert difference_from_plain(model, held, draft, logits) < TOLERANCE
        emitted = (*(draft.tokens[node] for node in path), 3, 4)
        session.commit(draft, NO_SCORES, Verdict(path, emitted))
        held += emitted
        assert session.cache.length == len(held) - 2, "rows it ran itself are kept"
        assert session.pending == [3, 4]
    session.extend(Prompt((6, 7)))
    twin = session.fork()
    for each, more in ((session, ()), (twin, (9,))):
        each.extend(Prompt(more))
        assert difference_from_plain(model, (*held, 6, 7, *more), draft, grow(drafter, each, draft)[0]) < TOLERANCE


def test_a_verdict_that_was_cut_leaves_a_root(adapted: Adapted) -> None:
    """Its last token has run as a node; the next tree hangs under it all the same."""
    model, backend = adapted("llama3")
    drafter, draft = backend.draft_model(), tree(12, seed=3)
    session = drafter.open(Prompt(PROMPT), NO_SCORES)
    grow(drafter, session, draft)
    path = draft.path(11)
    whole = Verdict(path, (*draft.words(11), 3))
    session.commit(draft, NO_SCORES, whole.cut(len(path)))
    assert session.pending == [draft.tokens[11]]
    logits, _ = grow(drafter, session, draft)
    assert difference_from_plain(model, PROMPT + draft.words(11), draft, logits) < TOLERANCE


def test_a_draft_that_was_never_committed_is_forgotten(adapted: Adapted) -> None:
    """The second tree reuses node numbers; the token of the first must not be found under them."""
    model, backend = adapted("gpt_neox")
    drafter = backend.draft_model()
    session = drafter.open(Prompt(PROMPT), NO_SCORES)
    first, second = tree(12, seed=3), tree(12, seed=4)
    grow(drafter, session, first)
    grow(drafter, session, second)
    session.commit(second, NO_SCORES, Verdict((), (first.tokens[0], 3)))
    logits, _ = grow(drafter, session, second)
    assert difference_from_plain(model, (*PROMPT, first.tokens[0], 3), second, logits) < TOLERANCE


def test_requests_at_different_depths_share_a_pass(adapted: Adapted, monkeypatch: pytest.MonkeyPatch) -> None:
    model, backend = adapted("opt")
    monkeypatch.setattr(draft_model, "SLICE_ROWS", 8)
    drafter, draft = backend.draft_model(), tree(12, seed=3)
    prompts = (PROMPT, words(30, seed=2))
    early, late = (drafter.open(Prompt(prompt), NO_SCORES) for prompt in prompts)
    drafter.step([Step(early, EMPTY, (ROOT,))])
    steps = [Step(early, draft, levels(draft)[1]), Step(late, EMPTY, (ROOT,))]
    (nodes, _), (root, _) = drafter.step(steps)
    found = dict(zip(levels(draft)[1], nodes.values, strict=True))
    assert difference_from_plain(model, prompts[0], draft, found) < TOLERANCE
    assert difference_from_plain(model, prompts[1], EMPTY, {ROOT: root.values[0]}) < TOLERANCE


@pytest.mark.parametrize(
    ("shape", "passes"), [("chain:depth=4", 5), ("rsd_c:branching=2-2-1", 6), ("rsd_s:width=3,depth=3", 6)]
)
@pytest.mark.parametrize("name", ["qwen3", "gpt_neox"])
@pytest.mark.parametrize("layers", [2, 3])
def test_greedy_answers_are_those_of_plain_decoding(
    layers: int, name: str, shape: str, passes: int, adapted: Adapted
) -> None:
    """Target and drafter (its own first layers, or all of them) both adapted, drafting trees: the same 24 tokens."""
    model, backend = adapted(name)
    scorer = backend.target(False)
    drafter: Any = AutoregressiveDrafter(
        backend.truncated(layers).draft_model(), SHAPES.make(shape), STOPS.make("never")
    )
    sampling, verifier = Sampling(temperature=0.0), GreedyVerifier()
    session = scorer.open(Prompt(PROMPT))
    beside, sampler = drafter.open(Prompt(PROMPT), session), sampling.begin(Prompt(PROMPT))
    answer: Path = ()
    taken = 0
    while len(answer) < 24:
        chance = KeyedChance(0, 0, sampler.length)
        [draft] = drafter.propose([Ask(beside, Budget(16, 6), sampler, chance)])
        [scores] = scorer.score([Job(session, draft, EVERYTHING)])
        verdict = verifier.verify(draft, scores, sampler, chance)
        session.commit(draft, verdict)
        beside.commit(draft, scores, verdict)
        sampler.commit(verdict.tokens)
        answer += verdict.tokens
        taken += 1
    logits, _ = at_once(model, PROMPT + answer)
    assert torch.equal(logits[len(PROMPT) - 1 : -1].argmax(-1), torch.tensor(answer))
    assert taken == passes or layers == 2, "the model agrees with itself all along"
