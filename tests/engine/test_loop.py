"""A drafter that raises: it fails loudly, or is reported once while the answer goes on plainly."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.scripted import END, KnowingDrafter, KnowingSession, engine, script_of
from tests.laws import answers as laws

from lope.core.draft import Draft
from lope.core.errors import DraftError, UsageError
from lope.core.prompt import Prompt
from lope.core.scores import Scores
from lope.core.verdict import Verdict
from lope.engine.conversation import Conversation
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.models.loaded import LoadedModel

SCRIPT = script_of("the quick brown fox")
Tiny = Callable[..., LoadedModel]


def breaks(number: int) -> None:
    if number == 2:
        raise RuntimeError("out of ideas")


class ForgetfulSession(KnowingSession):
    """Raises when it is told what became of its second draft."""

    def commit(self, draft: Draft, scores: Scores, verdict: Verdict) -> None:
        super().commit(draft, scores, verdict)
        if self.said > 5:
            raise KeyError("lost")


class ForgetfulDrafter(KnowingDrafter):
    def open(self, prompt: Prompt, beside: object) -> KnowingSession:
        return ForgetfulSession()


class ShutDrafter(KnowingDrafter):
    """Cannot even begin."""

    def open(self, prompt: Prompt, beside: object) -> KnowingSession:
        raise RuntimeError("no room for a second cache")

    def fork(self, session: KnowingSession, beside: object) -> KnowingSession:
        raise RuntimeError("no room for a second cache")


def made(drafter: KnowingDrafter, on_draft_error: str) -> Engine:
    plain = engine(SCRIPT)
    return Engine(plain.model, plain.parts, exact=False, drafter=drafter, on_draft_error=on_draft_error)


DRAFTERS = {
    "in a draft": (KnowingDrafter(SCRIPT, (2,), trouble=breaks), "RuntimeError: out of ideas"),
    "in a commit": (ForgetfulDrafter(SCRIPT, (2,)), "KeyError: 'lost'"),
    "at the start": (ShutDrafter(SCRIPT, (2,)), "RuntimeError: no room for a second cache"),
}


@pytest.mark.parametrize("where", DRAFTERS)
def test_a_drafter_that_raises_fails_the_answer(where: str) -> None:
    drafter, says = DRAFTERS[where]
    with pytest.raises(DraftError, match=says) as caught:
        made(drafter, "fail").generate("go", raw=True)
    assert "--on-draft-error fall-back" in str(caught.value)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("where", DRAFTERS)
def test_a_drafter_that_raises_is_reported_once_where_the_user_allowed_it(where: str) -> None:
    drafter, says = DRAFTERS[where]
    drafter.calls.clear()
    answer = made(drafter, "fall-back").generate("go", raw=True)
    assert answer.tokens == (*SCRIPT, END)
    assert answer.draft_error == f"the drafter failed ({says})"
    assert len(drafter.calls) <= 3, "it is not asked again"


@pytest.mark.parametrize("where", DRAFTERS)
def test_in_a_batch_every_answer_is_finished(where: str) -> None:
    drafter, _ = DRAFTERS[where]
    drafter.calls.clear()
    answers = made(drafter, "fall-back").generate_batch(["go", "go on"], raw=True, num_return_sequences=2)
    assert [answer.tokens for answer in answers] == [(*SCRIPT, END)] * 4
    assert all(answer.draft_error for answer in answers)


@pytest.mark.parametrize("where", DRAFTERS)
def test_a_conversation_outlives_a_drafter_that_raises(where: str) -> None:
    drafter, _ = DRAFTERS[where]
    drafter.calls.clear()
    conversation = Conversation(made(drafter, "fall-back"))
    for _ in range(3):
        stream = conversation.say("go")
        list(stream)
        assert stream.answer.tokens == (*SCRIPT, END)
    assert len(conversation.messages) == 6


def test_the_engine_answers_on_after_a_failed_answer(tiny_model: Tiny) -> None:
    """The target's sessions are the requests' own: what one left behind does not reach another."""
    model = tiny_model("llama3")
    expected = laws.tokens(laws.engine(model), laws.TEXTS[:2], max_new_tokens=12)
    calls = []

    class Sometimes:
        def __init__(self) -> None:
            self._inner = Parts("truncated:layers=2", "rsd_s").make_drafter(model)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def propose(self, asks: Any) -> Any:
            calls.append(len(asks))
            if len(calls) == 3:
                raise MemoryError("too much")
            return self._inner.propose(asks)

    broken = Engine(model, Parts("truncated:layers=2", "rsd_s"), exact=True, drafter=Sometimes())
    with pytest.raises(DraftError, match="MemoryError: too much"):
        laws.tokens(broken, laws.TEXTS[:2], max_new_tokens=12)
    assert laws.tokens(broken, laws.TEXTS[:2], max_new_tokens=12) == expected
    calls.clear()
    calls += [0]
    allowed = Engine(
        model, Parts("truncated:layers=2", "rsd_s"), exact=True, drafter=broken.drafter, on_draft_error="fall-back"
    )
    answers = laws.answers(allowed, laws.TEXTS[:2], max_new_tokens=12)
    assert [answer.tokens for answer in answers] == expected
    assert all(answer.draft_error for answer in answers)


def test_an_unknown_way_to_treat_draft_errors_is_refused() -> None:
    with pytest.raises(UsageError, match="'fail' or 'fall-back', not 'ignore'"):
        made(KnowingDrafter(SCRIPT), "ignore")


def test_a_budget_is_a_hard_cap_for_any_drafter() -> None:
    """A drafter that takes more depth than it was given would run past the context: its fault, not the answer's."""

    class Greedy(KnowingDrafter):
        def _propose(self, ask: Any, size: int) -> Draft:
            return super()._propose(ask, 9)

    with pytest.raises((DraftError, AssertionError), match="budget"):
        made(Greedy(SCRIPT), "fail").generate("go", raw=True, max_new_tokens=3)
