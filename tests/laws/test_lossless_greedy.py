"""Law 1: at temperature 0 the tokens equal plain decoding, for every drafter, shape, verifier and batch size."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.laws.answers import TEXTS, answers, engine, named, opened, other_verifier, pairs, tokens

from lope.core.draft import ROOT, Draft
from lope.core.prompt import Prompt
from lope.core.protocols import Chance, Sampler, Verifier
from lope.core.rows import Rows
from lope.core.sampling import PipelineSampler, Sampling
from lope.core.scores import Scores
from lope.core.verdict import Verdict
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.engine.settings import RequestSettings
from lope.models.lean.cache import SequenceCache
from lope.models.loaded import LoadedModel
from lope.verifiers import VERIFIERS
from lope.verifiers.greedy import GreedyVerifier

FAMILIES = ("llama3", "qwen2", "qwen3", "mistral", "llama-tied-biased")
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"repetition_penalty": 1.3},
    {"logit_bias": {265: 4.0, 270: -3.0, 104: float("-inf")}},
    {"min_new_tokens": 7, "logit_bias": {1: 5.0}},
    {"frequency_penalty": 0.7, "presence_penalty": 0.2, "repetition_penalty": 1.1},
)
BATCHES = (TEXTS[2:3], TEXTS[3:5], TEXTS)
COUNT = 10

Tiny = Callable[..., LoadedModel]
Folder = Callable[..., Path]


@pytest.fixture(scope="module")
def plain(tiny_model: Tiny) -> Callable[[str, int], dict[str, tuple[int, ...]]]:
    """(family, setting) -> the tokens of plain decoding of each text, made one by one."""

    @cache
    def make(family: str, setting: int) -> dict[str, tuple[int, ...]]:
        alone = engine(tiny_model(family))
        return {text: tokens(alone, [text], max_new_tokens=COUNT, **SETTINGS[setting])[0] for text in TEXTS}

    return make


def lossless_verifiers() -> list[str]:
    """Those that take temperature 0; which draws they take is for `check_pair` to say."""
    made = {name: VERIFIERS.make(name) for name in VERIFIERS}
    return [name for name, verifier in made.items() if verifier.lossless and verifier.accepts(True) is not None]


@pytest.mark.parametrize(("drafter", "shape"), pairs())
def test_tokens_equal_plain_decoding(
    drafter: str, shape: str, tiny_model: Tiny, tiny_folder: Folder, plain: Callable[[str, int], Any]
) -> None:
    number = pairs().index((drafter, shape))
    family = FAMILIES[number % len(FAMILIES)]
    accepted = 0
    auto = engine(tiny_model(family), named(drafter, family, tiny_folder), shape)
    for turn, verifier in enumerate(lossless_verifiers()):
        for size in {turn % 3, (turn + 1) % 3}:
            texts = BATCHES[size]
            setting = (number + turn + size) % len(SETTINGS)
            fast = other_verifier(auto, verifier, exact=(turn + size) % 2 == 0)
            made = answers(fast, texts, max_new_tokens=COUNT, **SETTINGS[setting])
            expected = [plain(family, setting)[text] for text in texts]
            assert [answer.tokens for answer in made] == expected, (family, verifier, SETTINGS[setting])
            accepted += sum(answer.stats.accepted for answer in made)
    assert (accepted > 0) == (drafter != "none"), "a law about speculation is empty where nothing is accepted"


@dataclass(frozen=True)
class OneTooMany:
    """Accepts the first child below the accepted path unseen."""

    lossless: ClassVar[bool] = True
    shares_noise: ClassVar[bool] = False
    accepts = GreedyVerifier.accepts

    def verify(self, draft: Draft, scores: Scores, sampler: Sampler, chance: Chance) -> Verdict:
        verdict = GreedyVerifier().verify(draft, scores, sampler, chance)
        below = draft.children[(verdict.path or (ROOT,))[-1] + 1]
        if not below:
            return verdict
        words = (*verdict.tokens[:-1], draft.tokens[below[0]])
        law = sampler.filtered(scores.logits.select([below[0] + 1]), [words])
        return Verdict((*verdict.path, below[0]), (*words, int(law.tokens(0, law.values[0].argmax()))))


@dataclass(frozen=True)
class Planted(Parts):
    """Parts with a verifier that is no part."""

    planted: Verifier = OneTooMany()

    def make_verifier(self, drafter: Any, greedy: bool) -> Verifier:
        return self.planted


class Forgetful(PipelineSampler):
    """Sees every node of a tree as if it stood at the root."""

    def processed(self, logits: Rows, paths: Any) -> Rows:
        return super().processed(logits, [()] * len(paths))


class ForgetfulSampling(Sampling):
    def begin(self, prompt: Prompt, stop_tokens: frozenset[int] = frozenset()) -> PipelineSampler:
        tracks = tuple(part.begin(prompt) for part in self.chain(stop_tokens))
        return Forgetful(self, tracks, len(prompt.ids))


def test_a_verifier_that_accepts_one_token_too_many_fails(tiny_model: Tiny, plain: Callable[[str, int], Any]) -> None:
    wrong = Engine(tiny_model("llama3"), Planted("truncated:layers=2", "rsd_c"), exact=True)
    assert tokens(wrong, TEXTS, max_new_tokens=COUNT) != [plain("llama3", 0)[text] for text in TEXTS]


@pytest.mark.parametrize("sampling", [Sampling, ForgetfulSampling])
def test_a_sampler_that_ignores_what_stands_on_the_path_fails(
    sampling: type[Sampling], tiny_model: Tiny, tiny_folder: Folder, plain: Callable[[str, int], Any]
) -> None:
    """The same run with the sound sampler shows that it is the sampler that fails."""
    fast = engine(tiny_model("llama3"), named("model:path={same}", "llama3", tiny_folder), "rsd_c:branching=2-1-1-1")
    settings = RequestSettings(sampling(repetition_penalty=1.3), max_new_tokens=COUNT)
    same = opened(fast, TEXTS, settings) == [plain("llama3", 1)[text] for text in TEXTS]
    assert same == (sampling is Sampling)


def test_a_target_that_does_not_gather_the_accepted_rows_fails(
    tiny_model: Tiny, tiny_folder: Folder, plain: Callable[[str, int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [plain("llama3", 0)[text] for text in TEXTS]

    def forget(self: SequenceCache, kept: Any) -> None:
        self.length += len(kept)

    monkeypatch.setattr(SequenceCache, "keep", forget)
    fast = engine(tiny_model("llama3"), named("model:path={other}", "llama3", tiny_folder), "rsd_c:branching=20-2")
    assert tokens(fast, TEXTS, max_new_tokens=COUNT) != expected
