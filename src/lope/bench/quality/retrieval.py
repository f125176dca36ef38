"""Finding one sentence in a long prompt: pass keys (Mohtashami & Jaggi 2023, arXiv:2305.16300), needles (Kamradt 2023).

Lengths are in tokens of the model under test, and what was reached is told; depth 0 is the beginning, 1 the end.
"""

import random
from dataclasses import dataclass

from lope.bench.quality.answers import Question
from lope.core import checks
from lope.core.errors import SettingError
from lope.engine.engine import Engine

KINDS = ("passkey", "needle")
_FILLER = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
_INTRO = "There is an important piece of information hidden inside a lot of irrelevant text. Find it and memorise it."
_PLACES = ("Lisbon", "Oslo", "Quito", "Hanoi", "Perth", "Dakar", "Turin", "Bergen")
_THINGS = ("a blue umbrella", "a wooden flute", "a jar of honey", "a paper kite", "an old compass", "a silver spoon")


@dataclass(frozen=True)
class Cell:
    """One length at one depth. tokens: of its longest prompt. found of count."""

    kind: str
    length: int
    depth: float
    tokens: int
    found: int
    count: int


@dataclass(frozen=True)
class Hidden:
    """One prompt with a sentence hidden in it; tokens: of the prompt as the model reads it."""

    kind: str
    length: int
    depth: float
    tokens: int
    question: Question


@dataclass(frozen=True)
class Retrieval:
    """`repeats` prompts of each kind, length and depth, each with another secret."""

    kinds: tuple[str, ...] = ("passkey",)
    lengths: tuple[int, ...] = (512, 1024)
    depths: tuple[float, ...] = (0.0, 0.5, 1.0)
    repeats: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise SettingError(f"retrieval is of {' or '.join(KINDS)}, not {kind!r}")
        for length in self.lengths:
            checks.at_least("a length", length, 1)
        for depth in self.depths:
            checks.between("a depth", depth, 0.0, 1.0)
        checks.at_least("repeats", self.repeats, 1)

    def prompts(self, engine: Engine, raw: bool, answer_tokens: int) -> list[Hidden]:
        """All prompts for a model. Raises SettingError where one does not fit its context with its answer."""
        context = engine.model.backend.context
        for length in self.lengths:
            if length + answer_tokens > context:
                raise SettingError(
                    f"a prompt of {length} tokens and an answer of {answer_tokens} do not fit the context of {context}"
                )
        return [
            self._hide(engine, raw, kind, length, depth, repeat)
            for kind in self.kinds
            for length in self.lengths
            for depth in self.depths
            for repeat in range(self.repeats)
        ]

    def _hide(self, engine: Engine, raw: bool, kind: str, length: int, depth: float, repeat: int) -> Hidden:
        """The longest prompt of at most `length` tokens."""
        chance = random.Random(f"{self.seed} {kind} {length} {depth} {repeat}")
        sentence, asked, secret = _secret(kind, chance)

        def prompt(fillers: int) -> str:
            before = round(depth * fillers)
            text = [_INTRO, *[_FILLER] * before, sentence, *[_FILLER] * (fillers - before), asked]
            return "\n".join(text)

        def tokens(fillers: int) -> int:
            return len(engine.ids(prompt(fillers), raw=raw))

        low, high = 0, 2 * length // len(engine.ids(_FILLER, raw=True)) + 2
        if tokens(0) > length:
            raise SettingError(f"a prompt of {length} tokens is too short: the question alone takes {tokens(0)}")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if tokens(middle) <= length else (low, middle)
        return Hidden(kind, length, depth, tokens(low), Question(prompt(low), (secret,), "contains"))


def _secret(kind: str, chance: random.Random) -> tuple[str, str, str]:
    """(the sentence, the question, the answer)."""
    if kind == "passkey":
        key = str(chance.randrange(10_000, 100_000))
        return (
            f"The pass key is {key}. Remember it. {key} is the pass key.",
            "What is the pass key? The pass key is",
            key,
        )
    place, thing = chance.choice(_PLACES), chance.choice(_THINGS)
    return (
        f"The best thing to buy in {place} is {thing}.",
        f"What is the best thing to buy in {place}? The best thing to buy in {place} is",
        thing,
    )
