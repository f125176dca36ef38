"""Laws 4, 7, 8: a batch answers as its requests do alone; a seed fixes the text of `coupled`; plainly, τ is 1."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.laws.answers import TEXTS, answers, engine, named, prompt
from tests.models.lean.random_decoder import words

from lope.core.draft import EMPTY
from lope.core.prompt import Prompt
from lope.core.protocols import Job
from lope.core.scores import ALL, Needs
from lope.engine.answer import Answer
from lope.engine.engine import Engine
from lope.engine.settings import RequestSettings
from lope.models.loaded import LoadedModel

EIGHT = (*TEXTS, "the end", "a cat and a dog and a cat and a dog and a", "1, 2, 3, 1, 2, 3, 1, 2")
COUNT = 9
PARTS = [
    ("none", "chain"),
    ("ngram", "chain"),
    ("truncated:layers=2", "rsd_s"),
    ("model:path={other}", "rsd_c"),
    ("standalone:path={standalone}", "rsd_s"),
    ("eagle:path={eagle}", "rsd_c"),
]
SETTINGS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"temperature": 0.8, "top_p": 0.9, "seed": 3, "repetition_penalty": 1.2},
}

Tiny = Callable[..., LoadedModel]
Folder = Callable[..., Path]


def said(made: Sequence[Answer]) -> list[Any]:
    """Everything of an answer that is not time, the bits of its log-probabilities too."""
    return [
        (a.text, a.tokens, a.finish_reason, a.logprobs, a.drafted, a.stats.passes, a.stats.drafted, a.stats.accepted)
        for a in made
    ]


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("drafter", "shape"), PARTS)
def test_a_batch_is_its_requests(drafter: str, shape: str, setting: str, tiny_model: Tiny, tiny_folder: Folder) -> None:
    """In exact mode to the bit: log-probabilities are compared as numbers."""
    made = engine(tiny_model("qwen2"), named(drafter, "qwen2", tiny_folder), shape)
    settings = {"max_new_tokens": COUNT, "logprobs": True, **SETTINGS[setting]}
    together = answers(made, EIGHT, **settings)
    alone = [made.generate(prompt(made.model, text), **settings) for text in EIGHT]
    assert said(together) == said(alone)
    assert len({answer.tokens for answer in together}) > 5, "different prompts, different answers"


@pytest.mark.usefixtures("kernels")
def test_packed_logits_have_the_bits_of_single_ones(tiny_model: Tiny) -> None:
    target = tiny_model("mistral").backend.target(exact=True)
    prompts = [Prompt(words(count, count)) for count in (1, 3, 8, 9, 40, 64, 65, 130)]
    jobs = [Job(target.open(prompt), EMPTY, Needs(logits=ALL)) for prompt in prompts]
    for one, scores in zip(prompts, target.score(jobs), strict=True):
        [alone] = target.score([Job(target.open(one), EMPTY, Needs(logits=ALL))])
        assert torch.equal(scores.logits.values, alone.logits.values)


@pytest.mark.parametrize(("drafter", "shape"), PARTS)
def test_forks_are_requests_with_seeds_of_their_own(
    drafter: str, shape: str, tiny_model: Tiny, tiny_folder: Folder
) -> None:
    made = engine(tiny_model("llama3"), named(drafter, "llama3", tiny_folder), shape)
    settings = {"max_new_tokens": COUNT, "temperature": 1.0, "logprobs": True}
    forked = answers(made, EIGHT[:3], num_return_sequences=3, seed=5, **settings)
    texts = [text for text in EIGHT[:3] for _ in range(3)]
    alone = [
        made.generate(prompt(made.model, text), seed=fork.seed, **settings)
        for text, fork in zip(texts, forked, strict=True)
    ]
    assert said(forked) == said(alone)
    assert [fork.seed for fork in forked[::3]] == [5, 5, 5]
    assert len({fork.seed for fork in forked[:3]}) == 3
    assert len({fork.tokens for fork in forked}) == 9
    again = answers(made, EIGHT[:3], num_return_sequences=3, seed=5, **settings)
    assert said(again) == said(forked)


def test_greedy_forks_are_all_alike(tiny_model: Tiny) -> None:
    made = engine(tiny_model("llama3"), "ngram")
    forked = answers(made, EIGHT[:1], num_return_sequences=3, max_new_tokens=COUNT)
    assert [fork.tokens for fork in forked] == [forked[0].tokens] * 3


@pytest.mark.parametrize(("drafter", "shape"), PARTS[1:])
@pytest.mark.parametrize("seed", [0, 11])
def test_coupled_gives_the_text_of_the_seed_with_and_without_speculation(
    drafter: str, shape: str, seed: int, tiny_model: Tiny, tiny_folder: Folder
) -> None:
    model = tiny_model("qwen3")
    plain = engine(model, verifier="coupled")
    fast = engine(model, named(drafter, "qwen3", tiny_folder), shape, "coupled")
    settings = {"max_new_tokens": COUNT, "temperature": 0.7, "top_k": 40, "presence_penalty": 0.3, "seed": seed}
    expected = [plain.generate(prompt(model, text), **settings).tokens for text in TEXTS]
    together = answers(fast, TEXTS, **settings)
    assert [answer.tokens for answer in together] == expected
    assert [fast.generate(prompt(model, text), **settings).tokens for text in TEXTS[:2]] == expected[:2]
    assert sum(answer.stats.accepted for answer in together) > 0 or drafter == "ngram"


def test_a_seed_that_the_fork_ignores_fails(tiny_model: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: every fork draws with the request's own seed."""

    def deaf(self: Engine, request: Any, settings: RequestSettings, index: int) -> Any:
        session = request.session.fork()
        return self.request(
            session, lambda: self.drafter.fork(request.draft_session, session), request.context, settings
        )

    monkeypatch.setattr(Engine, "fork", deaf)
    made = engine(tiny_model("llama3"))
    forked = answers(made, EIGHT[:1], num_return_sequences=3, seed=5, temperature=1.0, max_new_tokens=COUNT)
    assert len({fork.tokens for fork in forked}) == 1


def test_another_rule_than_coupled_gives_another_text(tiny_model: Tiny) -> None:
    """Planted: rejection sampling has the same law, but its text depends on the draft."""
    model = tiny_model("qwen3")
    settings = {"max_new_tokens": COUNT, "temperature": 0.7, "seed": 0}
    plain = answers(engine(model), EIGHT, **settings)
    rejected = answers(engine(model, "truncated:layers=2", "chain", "rejection"), EIGHT, **settings)
    assert [answer.tokens for answer in rejected] != [answer.tokens for answer in plain]


@pytest.mark.usefixtures("torch_kernels")
def test_slot_order_breaks_the_bits_of_a_batch(tiny_model: Tiny) -> None:
    """Planted: without exact passes torch's kernels make a batch agree with its requests within rounding only."""
    made = engine(tiny_model("qwen2"), "truncated:layers=2", "rsd_s", exact=False)
    together = answers(made, EIGHT, max_new_tokens=COUNT, logprobs=True)
    plain = answers(engine(tiny_model("qwen2"), exact=False), EIGHT, max_new_tokens=COUNT, logprobs=True)
    assert [answer.tokens for answer in together] == [answer.tokens for answer in plain]
    assert [answer.logprobs for answer in together] != [answer.logprobs for answer in plain]
    for one, other in zip(together, plain, strict=True):
        torch.testing.assert_close(torch.tensor(one.logprobs), torch.tensor(other.logprobs), atol=1e-4, rtol=0)


@pytest.mark.parametrize("settings", [*SETTINGS.values(), {"stop_strings": ("a",)}, {"max_new_tokens": 1}], ids=str)
def test_plain_decoding_has_one_token_a_pass(settings: dict[str, Any], tiny_model: Tiny) -> None:
    for answer in answers(engine(tiny_model("llama3")), EIGHT, **{"max_new_tokens": COUNT, **settings}):
        assert answer.stats.tokens_per_pass == 1.0
        assert answer.stats.passes == answer.stats.num_tokens - 1 == len(answer.tokens) - 1
        assert answer.stats.prompt_emitted == 1


def test_counting_what_the_prompts_pass_emits_fails(tiny_model: Tiny) -> None:
    """Planted: the formula without it. A short plain answer would claim more than one token a pass."""
    [plain] = answers(engine(tiny_model("llama3")), EIGHT[:1], max_new_tokens=COUNT)
    assert plain.stats.num_tokens / plain.stats.passes > 1.0
