"""Law 2 over the whole engine: three tokens out of the loop, filters and penalties on, have the target's joint law.

Counted, not enumerated (test_lossless_verifiers.py does that for verifiers): chi-square against the law written down by
the chain rule, Holm's correction over all pairs. Seeds are fixed, so that a run repeats itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path as Folder
from typing import Any

import pytest
import tokenizers
import torch
from tests.laws.enumeration import plain_law
from tests.models import random_drafter
from tests.models.lean.random_decoder import backend
from torch import Tensor

from lope.core.budget import UNLIMITED
from lope.core.draft import Draft
from lope.core.errors import UsageError
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Ask, Drafter, DraftModel, Target, Verifier
from lope.core.rows import Rows
from lope.core.sampling import Sampling
from lope.core.statistics import chi_square
from lope.drafters import DRAFTERS
from lope.drafters.around import AroundDrafter
from lope.drafters.autoregressive import AutoregressiveDrafter
from lope.drafters.own_sampling import OwnSampling
from lope.drafters.vocabulary import RespelledDraftModel, Trimmed
from lope.drafters.waiting import when_ready
from lope.engine.ending import TextEnding
from lope.engine.loop import Loop
from lope.engine.planted import Arrange, FaultyVerifier, dropped, merged, rearranged, shuffled, unrenormalised
from lope.engine.remembering import RememberingSampler
from lope.engine.request import Request
from lope.models.drafter_folder import DrafterFolder, DrafterTarget
from lope.models.lean.decoder import Decoder
from lope.models.lean.draft_model import LeanDraftModel
from lope.models.lean.drafter_weights import feature_weights, standalone_weights
from lope.models.lean.feature_draft_model import FeatureDraftModel
from lope.models.table import TableModel
from lope.models.table_draft import TableDraftModel
from lope.models.tokenizer import Tokenizer
from lope.policies.fixed import FixedPolicy
from lope.shapes import SHAPES
from lope.stops import STOPS
from lope.verifiers import VERIFIERS
from lope.verifiers.auto import check_pair

VOCABULARY, COUNT, LEVEL = 5, 3, 0.01
SAMPLES, BATCH = 1200, 400
PROMPT = (0, 2, 1, 0, 2, 3, 1, 0)  # its end has been there before: ngram has something to say
SETTINGS = (
    Sampling(temperature=0.9, top_k=4, repetition_penalty=1.3),
    Sampling(temperature=1.1, top_p=0.9, presence_penalty=0.5, frequency_penalty=-0.2),
    Sampling(temperature=0.8, min_p=0.05, top_p=0.97, repetition_penalty=1.15, logit_bias={3: 0.7}),
)
# the drafter samples otherwise than the request does
OWN = (OwnSampling(), OwnSampling(temperature=1.5), OwnSampling(top_k=3))
WISHES = {
    "rsd_c": "rsd_c:branching=3-2",
    "rsd_s": "rsd_s:width=3,depth=2",
    "independent": "independent:chains=3,depth=2",
}
TABLE = TableModel(VOCABULARY, seed=4, spread=1.2)
# of a dozen seeds the one whose law is widest: most is seen of it
REAL = backend(7, vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_heads=2, num_kv_heads=1, head_dim=8)
WORDS = Tokenizer(tokenizers.Tokenizer(tokenizers.models.WordLevel({str(token): token for token in range(VOCABULARY)})))


@dataclass(frozen=True, eq=False)
class Pair:
    """A target and a drafter beside it. tokens: how long the answers are of which the first three are counted."""

    target: Target[Any]
    drafter: Drafter[Any, Any]
    tokens: int = COUNT


@cache
def exact(target: Target[Any], sampling: int) -> Tensor:
    """[V, V, V]."""
    return plain_law(target, VOCABULARY, SETTINGS[sampling], PROMPT, COUNT)


@cache
def sides() -> dict[str, Pair]:
    """All of `drafters` beside the table, and those that a target teaches beside a real one.

    These draft from the second pass on, and four tokens leave them room for two levels.
    """
    plain = {name: Pair(TABLE, drafter) for name, drafter in drafters().items()}
    target = REAL.target(exact=False)
    return plain | {name: Pair(target, drafter, COUNT + 1) for name, drafter in taught().items()}


def taught() -> dict[str, Drafter[Any, Any]]:
    """The two forms, untrained; their heads know four of the five tokens."""
    found: dict[str, Drafter[Any, Any]] = {}
    for kind, shape in (("standalone", "rsd_s"), ("eagle", "rsd_c"), ("eagle", "chain")):
        about = random_drafter.about(kind, DrafterTarget("", "", VOCABULARY, 16, 2), kept=VOCABULARY - 1)
        folder = DrafterFolder(Folder(), about, random_drafter.tensors(about, 5))
        if kind == "eagle":
            model: DraftModel[Any, Any] = FeatureDraftModel(feature_weights(folder, REAL.embedding, REAL.context))
        else:
            model = LeanDraftModel(Decoder(standalone_weights(folder, REAL.embedding), invariant=False))
        trimmed = RespelledDraftModel(model, Trimmed(folder.tensors["kept"], VOCABULARY))
        made = AutoregressiveDrafter(trimmed, SHAPES.make(WISHES.get(shape, shape)), STOPS.make("never"))
        found[f"{kind}, {shape}"] = AroundDrafter(made, when_ready) if kind == "eagle" else made
    return found


def drafters() -> dict[str, Drafter[Any, Any]]:
    """Those that need no model, and a table with every shape, every other one with a stop rule."""
    found: dict[str, Drafter[Any, Any]] = {name: DRAFTERS.make(name) for name in ("none", "ngram")}
    model = TableDraftModel(VOCABULARY, seed=9, spread=0.8)
    for number, shape in enumerate(SHAPES):
        stop = STOPS.make(("never", "max_confidence:threshold=0.5")[number % 2])
        made = AutoregressiveDrafter(model, SHAPES.make(WISHES.get(shape, shape)), stop, own=OWN[number % len(OWN)])
        found[f"table, {shape}"] = made
    return found


def pairs() -> list[tuple[str, str]]:
    """Every drafter with every verifier that takes it at a temperature above 0."""
    found = []
    for name, pair in sides().items():
        for verifier in VERIFIERS:
            try:
                check_pair(VERIFIERS.make(verifier), pair.drafter.draws(False), greedy=False)
            except UsageError:
                continue
            found.append((name, verifier))
    return found


def counted(pair: Pair, verifier: Verifier, sampling: Sampling, seed: int) -> tuple[Tensor, int]:
    """(how often each [V, V, V] was said, how many drafted tokens were accepted)."""
    counts = torch.zeros((VOCABULARY,) * COUNT, dtype=torch.float64)
    accepted = 0
    loop = Loop(pair.target, pair.drafter, FixedPolicy(UNLIMITED, UNLIMITED))
    make = maker(pair, verifier, sampling)
    for start in range(0, SAMPLES, BATCH):
        requests = [make(seed + start + number) for number in range(BATCH)]
        said: list[list[int]] = [[] for _ in requests]
        for one, piece in loop.run(requests):
            said[one.number - seed - start] += piece.tokens
            accepted += sum(piece.drafted)
        for tokens in said:
            counts[tuple(tokens[:COUNT])] += 1
    return counts, accepted


def maker(pair: Pair, verifier: Verifier, sampling: Sampling) -> Callable[[int], Request]:
    """seed -> a request. The pipeline runs once for each row that can be asked for, which is most of the work."""
    prompt, drafter = Prompt(PROMPT), pair.drafter
    target_rows: dict[tuple[Path, bytes], Rows] = {}
    draft_rows: dict[tuple[Path, bytes], Rows] = {}

    def make(seed: int) -> Request:
        session = pair.target.open(prompt)
        return Request(
            seed,
            session=session,
            draft_session=drafter.open(prompt, session),
            sampler=RememberingSampler(sampling.begin(prompt), PROMPT, target_rows),
            draft_sampler=RememberingSampler(drafter.sampling(sampling).begin(prompt), PROMPT, draft_rows),
            verifier=verifier,
            ending=TextEnding(WORDS, stop_tokens=frozenset(), stop_strings=(), max_new_tokens=pair.tokens),
            seed=seed,
            context=prompt,
        )

    return make


@pytest.mark.parametrize(("name", "verifier"), pairs())
def test_three_tokens_have_the_targets_law(name: str, verifier: str) -> None:
    """One pair at its share of the level: Holm's correction rejects any pair if and only if one of these fails."""
    number = pairs().index((name, verifier))
    setting = number % len(SETTINGS)
    pair = sides()[name]
    counts, accepted = counted(pair, VERIFIERS.make(verifier), SETTINGS[setting], seed=10**6 * number)
    assert float(counts.sum()) == SAMPLES
    assert (accepted > SAMPLES / 20) == (name != "none")
    assert chi_square(counts, exact(pair.target, setting))[1] > LEVEL / len(pairs())


@dataclass(frozen=True, eq=False)
class Faulty:
    """A sound drafter whose drafts are tampered with on their way."""

    inner: Drafter[Any, Any]
    change: Callable[[Draft], Draft]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def propose(self, asks: Sequence[Ask[Any]]) -> list[Draft]:
        return [self.change(draft) for draft in self.inner.propose(asks)]


def arranged(arrange: Arrange) -> Callable[[Draft], Draft]:
    return lambda draft: rearranged(draft, arrange)


def flattened(draft: Draft) -> Draft:
    """The draft's law is reported without its temperature and filters: flatter than what was drawn from."""
    if draft.laws is None:
        return draft
    laws = draft.laws
    flat = laws.values.sqrt()
    rows = type(laws)(flat / flat.sum(-1, keepdim=True), laws.ids, laws.size, 0.0)
    return Draft(draft.tokens, draft.parents, draft.draws, draft.source, rows, draft.law_of)


RSD, TWINS, CHAIN = "table, rsd_c", "table, independent", "table, chain"
FAULTS: dict[str, tuple[str, Verifier, Callable[[Draft], Draft]]] = {
    "no residual": (RSD, FaultyVerifier(residual=False), lambda draft: draft),
    "unrenormalised draft": (RSD, FaultyVerifier(unrenormalised), lambda draft: draft),
    "shuffled siblings": (RSD, VERIFIERS.make("recursive"), arranged(shuffled)),
    "dropped drawn tokens": (RSD, VERIFIERS.make("recursive"), arranged(dropped)),
    "merged duplicates": (TWINS, VERIFIERS.make("recursive_with_replacement"), arranged(merged)),
    "another law than was drawn from": (CHAIN, VERIFIERS.make("rejection"), flattened),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_changes_the_law(name: str) -> None:
    """Rejected at the strictest level that the law above holds its pairs to."""
    drafter, verifier, change = FAULTS[name]
    counts, _ = counted(Pair(TABLE, Faulty(drafters()[drafter], change)), verifier, SETTINGS[0], seed=0)
    assert chi_square(counts, exact(TABLE, 0))[1] < LEVEL / len(pairs())


def test_a_loop_that_drafts_with_the_targets_own_chance_changes_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: drafting and verifying read the same stream, so that acceptance knows how the token was drawn."""
    monkeypatch.setattr("lope.engine.request._DRAFTING", 2)
    counts, _ = counted(Pair(TABLE, drafters()[CHAIN]), VERIFIERS.make("rejection"), SETTINGS[0], seed=0)
    assert chi_square(counts, exact(TABLE, 0))[1] < LEVEL / len(pairs())
