"""Limits, figures and log-probabilities of one answer, with and without speculation."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.scripted import END, KnowingDrafter, engine, script_of
from tests.laws import answers as laws

from lope.core.errors import UsageError
from lope.core.prompt import Prompt
from lope.engine.answer import Answer, FinishReason
from lope.engine.engine import Engine
from lope.models.loaded import LoadedModel

SCRIPT = script_of("the quick brown fox jumps over the lazy dog")
DRAFTERS = [("ngram", "chain"), ("truncated:layers=2", "rsd_s"), ("truncated:layers=2", "independent")]

Tiny = Callable[..., LoadedModel]
Folder = Callable[..., Path]


def check_figures(answer: Answer) -> None:
    """What must hold of the figures of any answer."""
    stats = answer.stats
    assert stats.num_tokens == len(answer.tokens) == len(answer.drafted) == len(stats.token_times)
    assert stats.tokens_per_pass == ((stats.num_tokens - stats.prompt_emitted) / stats.passes if stats.passes else 1.0)
    assert stats.accepted == sum(stats.accepted_at) == sum(answer.drafted)
    assert stats.num_tokens == 1 + stats.passes + stats.accepted, "each pass adds one token to those it accepts"
    assert stats.accepted <= stats.drafted
    assert len(stats.offered_at) == len(stats.accepted_at) == len(stats.acceptance)
    assert all(offered >= accepted for offered, accepted in zip(stats.offered_at, stats.accepted_at, strict=True))
    assert all(after <= before for before, after in zip(stats.accepted_at, stats.offered_at[1:], strict=False))
    assert all(0.0 <= share <= 1.0 for share in stats.acceptance)
    assert list(stats.token_times) == sorted(stats.token_times)
    assert 0.0 < stats.time_to_first_token <= stats.seconds


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 8), max_size=4).map(tuple),
    right=st.integers(0, 8),
    limit=st.integers(1, 60),
)
def test_figures_add_up(sizes: tuple[int, ...], right: int, limit: int) -> None:
    made = engine(SCRIPT, sizes=sizes, right=right)
    answer = made.generate("go", raw=True, max_new_tokens=limit)
    assert answer.tokens == (*SCRIPT, END)[:limit]
    assert answer.stats.num_tokens <= limit
    check_figures(answer)


def test_a_draft_that_is_right_is_accepted_whole() -> None:
    answer = engine(SCRIPT, sizes=(4,)).generate("go", raw=True)
    assert answer.stats.drafted == answer.stats.accepted + 1, "the stop token is committed as text, not as a node"
    assert answer.stats.prompt_emitted == 5
    assert answer.stats.acceptance[:3] == (1.0, 1.0, 1.0)
    assert answer.drafted[:6] == (True, True, True, True, False, True)


def test_a_draft_that_is_wrong_costs_no_token() -> None:
    answer = engine(SCRIPT, sizes=(4,), right=0).generate("go", raw=True)
    assert answer.stats.accepted == 0
    assert answer.stats.tokens_per_pass == 1.0
    assert answer.stats.acceptance == (0.0,)


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 7])
def test_max_new_tokens_is_never_exceeded_nor_drafted_past(limit: int) -> None:
    made = engine(SCRIPT, sizes=(50,))
    answer = made.generate("go", raw=True, max_new_tokens=limit)
    assert answer.tokens == SCRIPT[:limit]
    assert answer.finish_reason is FinishReason.LENGTH
    assert answer.stats.drafted <= limit - 1


@pytest.mark.parametrize("sizes", [(), (1,), (50,)])
@pytest.mark.parametrize("context", [3, 4, 5, 20])
def test_the_context_is_never_exceeded(sizes: tuple[int, ...], context: int) -> None:
    """The script's target asserts that it never holds more; two items are the prompt."""
    answer = engine(SCRIPT, sizes=sizes, context=context).generate("go", raw=True)
    assert answer.tokens == SCRIPT[: context - 2]
    assert answer.finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize(("drafter", "shape"), [("none", "chain"), *DRAFTERS])
def test_a_real_models_context_is_never_exceeded(drafter: str, shape: str, tiny_model: Tiny) -> None:
    model = tiny_model("llama3")
    ids = tuple(range(2, 252))
    made = laws.engine(model, drafter, shape)
    answer = made.generate(Prompt(ids), ignore_stop=True)
    assert len(answer.tokens) == model.backend.context - len(ids) == 6
    assert answer.finish_reason is FinishReason.LENGTH
    plain = laws.engine(model).generate(Prompt(ids), ignore_stop=True)
    assert answer.tokens == plain.tokens


def test_a_prompt_that_leaves_no_room_is_refused(tiny_model: Tiny) -> None:
    made = laws.engine(tiny_model("llama3"))
    with pytest.raises(UsageError, match="fills the model's context of 256 tokens"):
        made.generate(Prompt((5,) * 256))
    with pytest.raises(UsageError, match="the prompt has 300 tokens, but the model's context holds 256"):
        made.generate(Prompt((5,) * 300))


@pytest.mark.parametrize("sizes", [(), (3,), (50,)])
def test_min_new_tokens_forbids_stopping_before(sizes: tuple[int, ...]) -> None:
    """The script stops after two tokens; the runner-up of a forbidden stop is the stop token again, so the best
    other token fills the gap."""
    answer = engine(script_of("ab"), sizes=sizes).generate("go", raw=True, min_new_tokens=5)
    assert len(answer.tokens) == 6
    assert answer.tokens.index(END) == 5
    assert answer.finish_reason is FinishReason.STOP


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.9, "top_p": 0.8, "seed": 4, "repetition_penalty": 1.3}])
@pytest.mark.parametrize(("drafter", "shape"), [("none", "chain"), *DRAFTERS])
def test_log_probabilities_are_those_of_an_independent_forward_pass(
    drafter: str, shape: str, settings: dict[str, Any], tiny_model: Tiny, tiny_folder: Folder
) -> None:
    """transformers says what the model's unprocessed logits are; filters and penalties do not enter."""
    transformers = pytest.importorskip("transformers")
    made = laws.engine(tiny_model("llama3"), drafter, shape)
    prompt = laws.prompt(made.model, laws.TEXTS[0])
    stream = made.stream(prompt, max_new_tokens=20, logprobs=True, **settings)
    pieces = list(stream)
    answer = stream.answer
    assert answer.logprobs is not None
    assert answer.logprobs == tuple(value for piece in pieces for value in piece.logprobs or ())
    reference = transformers.AutoModelForCausalLM.from_pretrained(tiny_folder("llama3")).eval()
    with torch.inference_mode():
        logits = reference(torch.tensor([prompt.ids + answer.tokens])).logits[0, len(prompt.ids) - 1 : -1]
    chosen = logits.log_softmax(-1).gather(-1, torch.tensor(answer.tokens)[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(answer.logprobs), chosen, atol=1e-4, rtol=0)
    assert drafter in ("none", "ngram") or answer.stats.accepted > 0
    check_figures(answer)


def test_log_probabilities_are_given_only_where_asked() -> None:
    assert engine(SCRIPT).generate("go", raw=True).logprobs is None


def test_a_stream_that_is_broken_off_leaves_the_engine_as_it_was(tiny_model: Tiny) -> None:
    made = laws.engine(tiny_model("llama3"), "truncated:layers=2", "rsd_s")
    whole = made.generate(laws.prompt(made.model, laws.TEXTS[0]), max_new_tokens=16)
    stream = made.stream(laws.prompt(made.model, laws.TEXTS[0]), max_new_tokens=16)
    for _ in stream:
        break
    begun = stream.answer
    assert 0 < len(begun.tokens) < len(whole.tokens)
    assert begun.tokens == whole.tokens[: len(begun.tokens)]
    assert whole.text.startswith(begun.text)
    assert made.generate(laws.prompt(made.model, laws.TEXTS[0]), max_new_tokens=16).tokens == whole.tokens
    list(stream)
    assert stream.answer.tokens == whole.tokens, "it goes on where it was broken off"


def test_what_has_not_begun_has_no_figures() -> None:
    answer = engine(SCRIPT).stream("go", raw=True).answer
    assert (answer.text, answer.tokens, answer.stats.tokens_per_pass, answer.stats.tokens_per_second) == (
        "",
        (),
        1.0,
        0,
    )


def test_a_policy_hears_every_round_and_its_budget_is_a_hard_cap() -> None:
    class Watching:
        def __init__(self) -> None:
            self.rounds: list[Any] = []

        def choose(self, situations: Any) -> Any:
            from lope.core.budget import Budget

            assert all(situation.greedy and situation.room >= 0 for situation in situations)
            return [Budget(2, 2)] * len(situations)

        def learn(self, rounds: Any) -> None:
            self.rounds += rounds

    policy = Watching()
    plain = engine(SCRIPT)
    made = Engine(plain.model, plain.parts, exact=False, drafter=KnowingDrafter(SCRIPT, (9,)), policy=policy)
    answer = made.generate("go", raw=True)
    assert len(policy.rounds) == answer.stats.passes + 1
    assert all(len(record.parents) <= 2 for record in policy.rounds)
    assert sum(record.emitted for record in policy.rounds) == len(answer.tokens)
    assert [record.prompt for record in policy.rounds] == [True] + [False] * answer.stats.passes
    assert [record.cut for record in policy.rounds] == [False] * answer.stats.passes + [True]
