"""A model as drafter, and the target's own layers, on real tiny decoders with caches of their own."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lope.core.budget import Budget
from lope.core.chance import KeyedChance
from lope.core.draft import EMPTY
from lope.core.errors import LopeError, SettingError, UsageError
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Ask
from lope.core.sampling import Sampling
from lope.core.verdict import Verdict
from lope.drafters import DRAFTERS
from lope.drafters.model import ModelDrafter
from lope.drafters.truncated import TruncatedDrafter
from lope.drafters.workshop import Workshop
from lope.models.loaded import LoadedModel
from lope.shapes import SHAPES
from lope.stops.never import NeverStop

SAMPLED = Sampling(temperature=0.9, top_p=0.95)


@pytest.fixture
def workshop(tiny_model: Callable[..., LoadedModel]) -> Workshop:
    return Workshop(tiny_model(), SHAPES.make("rsd_s:width=3,depth=3"), NeverStop(), lambda name: tiny_model(seed=1))


def propose(drafter: Any, sessions: list[Any], texts: list[Path], sampling: Sampling) -> list[Any]:
    return drafter.propose(
        [
            Ask(session, Budget(9, 3), drafter.sampling(sampling).begin(Prompt(text)), KeyedChance(1, 0, len(text)))
            for session, text in zip(sessions, texts, strict=True)
        ]
    )


def close(one: Any, other: Any) -> bool:
    """Equal trees; laws as near as float32 passes of different sizes are."""
    if (one.tokens, one.parents, one.law_of) != (other.tokens, other.parents, other.law_of):
        return False
    rows = range(0 if one.laws is None else len(one.laws))
    return all(torch.allclose(one.laws.dense(row), other.laws.dense(row), atol=1e-4) for row in rows)


@pytest.mark.parametrize("name", ["model:path=small", "truncated:layers=1"])
@pytest.mark.parametrize("sampling", [Sampling(), SAMPLED], ids=["greedy", "sampled"])
def test_sessions_reopen_and_pack(workshop, name, sampling):
    """Two requests, drafted together round by round, against sessions opened on the whole text."""
    drafter = DRAFTERS.make(name).attach(workshop)
    texts: list[Path] = [(1, 5, 9, 12), (3, 4)]
    sessions = [drafter.open(Prompt(text), None) for text in texts]
    for number in range(4):
        drafts = propose(drafter, sessions, texts, sampling)
        for request, draft in enumerate(drafts):
            path = draft.path((number * 3 + request) % len(draft)) if number % 2 else ()
            verdict = Verdict(path, (*(draft.tokens[node] for node in path), 7 + number, 2))
            sessions[request].commit(draft, None, verdict)
            texts[request] += verdict.tokens
        fresh = [drafter.open(Prompt(text), None) for text in texts]
        again = propose(drafter, sessions, texts, sampling)
        for request in range(2):
            [alone] = propose(drafter, fresh[request : request + 1], texts[request : request + 1], sampling)
            assert close(again[request], alone)
    copy = drafter.fork(sessions[0], None)
    copy.commit(EMPTY, None, Verdict((), (8, 8)))
    [after], [before] = (propose(drafter, sessions[:1], texts[:1], sampling) for _ in range(2))
    assert close(after, before)


def test_another_tokenizer_is_refused_by_content():
    """Equal sizes do not help; both models are named."""

    def model(name: str, fingerprint: str) -> Any:
        return SimpleNamespace(name=name, tokenizer=SimpleNamespace(fingerprint=fingerprint), backend=None)

    workshop = Workshop(model("big", "a"), SHAPES.make("chain"), NeverStop(), lambda name: model(name, "b"))
    with pytest.raises(UsageError, match=r"the drafter small and the target big have different tokenizers"):
        ModelDrafter("small").attach(workshop)


def test_settings_are_checked():
    with pytest.raises(SettingError, match="model needs path"):
        DRAFTERS.make("model")
    for wrong in ({"temperature": -1.0}, {"top_k": 0}, {"top_p": 2.0}):
        with pytest.raises(SettingError):
            ModelDrafter("x", **wrong)
    with pytest.raises(SettingError, match="layers must be at least 1"):
        TruncatedDrafter(0)


def test_more_layers_than_the_target_has_are_refused(workshop):
    with pytest.raises(LopeError):
        TruncatedDrafter(1000).attach(workshop)
