"""Copies what followed the last time: prompt lookup decoding (Saxena 2023), longest and latest match first.

Where the match ends at the end of the context the copy goes on into itself, as in LZ77 (Ziv & Lempel 1977): a text that
repeats with a short period is drafted to the full length, not to the end of what has been written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from lope.core import checks
from lope.core.draft import EMPTY, Draft, Draw, chain
from lope.core.errors import SettingError
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Ask
from lope.core.sampling import Sampling
from lope.core.scores import Needs, Scores
from lope.core.verdict import Verdict
from lope.drafters.workshop import Workshop

_PICTURE = -1


class NgramSession:
    """The words so far and an index of where each n-gram was last continued; nothing is ever scanned again."""

    def __init__(self, shortest: int, longest: int) -> None:
        self._shortest = shortest
        self._longest = longest
        self._words: list[int] = []
        self._since = 0  # words since the last picture: no n-gram reaches further back
        self._continued: dict[int, int] = {}  # key of an n-gram -> where its latest continuation stands

    def extend(self, prompt: Prompt) -> None:
        """Append a prompt; a picture stands between its words as a wall."""
        for item in _items(prompt):
            self._append(item)

    def commit(self, draft: Draft, scores: Scores, verdict: Verdict) -> None:
        """Append what was emitted."""
        for token in verdict.tokens:
            self._append(token)

    def fork(self) -> "NgramSession":
        """An independent copy."""
        copy = NgramSession(self._shortest, self._longest)
        copy._words, copy._since, copy._continued = list(self._words), self._since, dict(self._continued)
        return copy

    def continuation(self, count: int) -> Path:
        """Up to `count` tokens that followed the longest n-gram at the end, where it last occurred before; or ()."""
        _, start = self._longest_match()
        return () if start is None else self._copy(start, count)

    def as_far_as_matched(self, count: int) -> Path:
        """No more of it than the n-gram is long."""
        matched, start = self._longest_match()
        return () if start is None else self._copy(start, min(count, matched))

    def _longest_match(self) -> tuple[int, int | None]:
        """(length of the longest n-gram that stood before, where it was last continued); None where there is none."""
        keys = self._keys()
        for more in reversed(range(len(keys))):
            start = self._continued.get(keys[more])
            if start is not None:
                return self._shortest + more, start
        return 0, None

    def _copy(self, start: int, count: int) -> Path:
        copied = self._words[start : start + count]
        if _PICTURE in copied:
            return tuple(copied[: copied.index(_PICTURE)])
        period = len(self._words) - start
        return tuple((copied * -(-count // period))[:count] if period < count else copied)

    def _keys(self) -> list[int]:
        """The n-grams at the end, shortest first, each as one integer: thousands of tuples would wake the collector."""
        keys: list[int] = []
        key = 0
        for back in range(1, min(self._longest, self._since) + 1):
            key = key << 32 | (self._words[-back] + 1)
            keys.append(key)
        return keys[self._shortest - 1 :]

    def _append(self, item: int) -> None:
        if item == _PICTURE:
            self._since = 0
        else:
            for key in self._keys():
                self._continued[key] = len(self._words)
            self._since += 1
        self._words.append(item)


def _items(prompt: Prompt) -> Iterator[int]:
    at = 0
    for span in prompt.spans:
        yield from prompt.ids[at : span.start]
        yield _PICTURE
        at = span.stop
    yield from prompt.ids[at:]


@dataclass(frozen=True)
class NgramDrafter:
    """A chain of up to `num_tokens` tokens after the longest match of min_ngram to max_ngram tokens; no model at all.

    It costs microseconds, so that even a match of one token pays where a pass over a few more rows is nearly free;
    raise min_ngram where it is not.
    """

    max_ngram: int = 4
    min_ngram: int = 1
    num_tokens: int = 10

    needs: ClassVar[Needs] = Needs()
    sources: ClassVar[tuple[str, ...]] = ("ngram",)

    def __post_init__(self) -> None:
        checks.at_least("min_ngram", self.min_ngram, 1)
        checks.at_least("num_tokens", self.num_tokens, 1)
        if self.max_ngram < self.min_ngram:
            raise SettingError(f"max_ngram must be at least min_ngram ({self.min_ngram}), not {self.max_ngram}")

    def attach(self, workshop: Workshop) -> Self:
        """Itself."""
        return self

    def draws(self, greedy: bool) -> frozenset[Draw]:
        """Points: a copied token is named without chance."""
        return frozenset({Draw.POINT})

    def sampling(self, request: Sampling) -> Sampling:
        """The request's own; it draws nothing."""
        return request

    def open(self, prompt: Prompt, beside: object) -> NgramSession:
        """A session that has read the prompt."""
        session = NgramSession(self.min_ngram, self.max_ngram)
        session.extend(prompt)
        return session

    def fork(self, session: NgramSession, beside: object) -> NgramSession:
        """An independent copy."""
        return session.fork()

    def propose(self, asks: Sequence[Ask[NgramSession]]) -> list[Draft]:
        """A chain for each ask."""
        return [self._propose(ask) for ask in asks]

    def _propose(self, ask: Ask[NgramSession]) -> Draft:
        count = min(self.num_tokens, ask.budget.nodes, ask.budget.depth)
        tokens = ask.session.continuation(count) if count > 0 else ()
        return chain(tokens) if tokens else EMPTY
