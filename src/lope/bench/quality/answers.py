"""A prompt with what its answer should be, and what a configuration answered."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lope.core.errors import UsageError
from lope.core.prompt import Path as Ids
from lope.engine.engine import Engine

_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")


@dataclass(frozen=True)
class Question:
    """answers: any of them is right. match: `exact` (white space aside), `contains`, `number` (the last one)."""

    prompt: str
    answers: tuple[str, ...]
    match: str = "exact"

    def right(self, text: str) -> bool:
        """Whether an answer's text is right."""
        return any(MATCHES[self.match](text, answer) for answer in self.answers)


@dataclass(frozen=True)
class Given:
    """What was answered."""

    text: str
    tokens: Ids
    right: bool


def answer(
    engine: Engine, questions: Sequence[Question], *, max_new_tokens: int, raw: bool, advance: Callable[[], None]
) -> list[Given]:
    """Greedy answers, one by one; with the model's chat template unless `raw`. Raises UsageError."""
    given = []
    for question in questions:
        made = engine.generate(question.prompt, raw=raw, max_new_tokens=max_new_tokens, temperature=0.0, seed=0)
        given.append(Given(made.text, made.tokens, question.right(made.text)))
        advance()
    return given


def as_raw(engine: Engine, raw: bool) -> bool:
    """Whether prompts go in bare: as asked, and where the model has no chat template."""
    return raw or engine.model.template is None


def agreement(given: Sequence[Given], reference: Sequence[Given]) -> float | None:
    """The share of answers with the very tokens of the reference's; None where nothing was asked."""
    pairs = list(zip(given, reference, strict=True))
    return sum(one.tokens == other.tokens for one, other in pairs) / len(pairs) if pairs else None


def check_match(match: object, where: str) -> str:
    """Refuse a way of matching that does not exist."""
    if not isinstance(match, str) or match not in MATCHES:
        raise UsageError(f"{where}: match is one of {', '.join(MATCHES)}, not {match!r}")
    return match


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _number(text: str) -> float | None:
    found = _NUMBER.findall(text)
    return float(found[-1].replace(",", "")) if found else None


def _same_number(text: str, answer: str) -> bool:
    wanted = _number(answer)
    return wanted is not None and _number(text) == wanted


MATCHES: dict[str, Callable[[str, str], bool]] = {
    "exact": lambda text, answer: _plain(text) == _plain(answer),
    "contains": lambda text, answer: _plain(answer) in _plain(text),
    "number": _same_number,
}
