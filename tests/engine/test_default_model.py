"""SmolLM2 itself: in exact mode and float32 speculation leaves every token and every bit of its logits alone."""

import pytest
from tests.laws.answers import other_verifier

from lope.engine.engine import Engine
from lope.engine.opening import load
from lope.engine.parts import Parts

pytestmark = pytest.mark.model
QUESTIONS = (
    "Repeat after me, word for word: the cat sat on the mat, and the cat sat on the mat again.",
    "List the numbers from one to ten.",
    "Why is the sky blue?",
)


@pytest.fixture(scope="module")
def plain() -> Engine:
    return load("smollm2", drafter="none", dtype="float32", exact=True, progress=False)


@pytest.mark.parametrize("parts", [("ngram", "chain"), ("truncated:layers=6", "rsd_s")])
def test_a_batch_with_speculation_is_plain_decoding(parts: tuple[str, str], plain: Engine) -> None:
    expected = [plain.generate(question, max_new_tokens=16, logprobs=True) for question in QUESTIONS]
    fast = Engine(plain.model, Parts(*parts), exact=True)
    answers = fast.generate_batch(QUESTIONS, max_new_tokens=16, logprobs=True)
    assert [answer.tokens for answer in answers] == [answer.tokens for answer in expected]
    assert [answer.logprobs for answer in answers] == [answer.logprobs for answer in expected]
    assert sum(answer.stats.accepted for answer in answers) > 0


def test_coupled_sampling_repeats_the_seeds_text(plain: Engine) -> None:
    settings = {"max_new_tokens": 16, "temperature": 0.8, "top_p": 0.9, "seed": 7}
    expected = plain.generate(QUESTIONS[0], **settings)
    fast = other_verifier(Engine(plain.model, Parts("truncated:layers=6", "rsd_s"), exact=True), "coupled", exact=True)
    assert fast.generate(QUESTIONS[0], **settings).tokens == expected.tokens
