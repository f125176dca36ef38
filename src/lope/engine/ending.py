"""Where an answer ends: stop tokens, stop strings and limits, found inside an accepted block and cut exactly."""

from collections.abc import Sequence
from typing import Protocol

from lope.core.prompt import Path
from lope.engine.answer import FinishReason
from lope.models.detokenizer import Detokenizer
from lope.models.tokenizer import Tokenizer


class Ending(Protocol):
    """Decides, token by token, whether an answer goes on."""

    @property
    def reason(self) -> FinishReason | None:
        """Why the answer ended; None while it goes on."""

    @property
    def left(self) -> int:
        """How many more tokens may come."""

    def feed(self, tokens: Path) -> tuple[int, str]:
        """How many of these tokens belong to the answer, and the text that they release."""


class TextEnding:
    """Watches one answer as text. What may be the beginning of a stop string is held back until it is known."""

    def __init__(
        self, tokenizer: Tokenizer, *, stop_tokens: frozenset[int], stop_strings: Sequence[str], max_new_tokens: int
    ) -> None:
        self._detokenizer = Detokenizer(tokenizer)
        self._stop_tokens = stop_tokens
        self._stop_strings = tuple(stop_strings)
        self._left = max_new_tokens
        self._held = ""
        self.reason: FinishReason | None = None

    @property
    def left(self) -> int:
        """How many more tokens may come."""
        return self._left

    def feed(self, tokens: Path) -> tuple[int, str]:
        """How many of these tokens belong to the answer, and the text that they release. Sets `reason` at the end."""
        released = ""
        for count, token in enumerate(tokens, start=1):
            self._left -= 1
            if token in self._stop_tokens:
                self.reason = FinishReason.STOP
                return count, released + self._flush()
            text = self._detokenizer.feed((token,))
            if self._left == 0:
                text += self._detokenizer.finish()
            found, text = self._release(text)
            released += text
            if found:
                self.reason = FinishReason.STOP_STRING
                return count, released
            if self._left == 0:
                self.reason = FinishReason.LENGTH
                return count, released + self._take_held()
        return len(tokens), released

    def _flush(self) -> str:
        found, text = self._release(self._detokenizer.finish())
        return text if found else text + self._take_held()

    def _take_held(self) -> str:
        held, self._held = self._held, ""
        return held

    def _release(self, text: str) -> tuple[bool, str]:
        """(was a stop string found, text that is final now)."""
        text = self._take_held() + text
        found = [at for at in (text.find(stop) for stop in self._stop_strings) if at >= 0]
        if found:
            return True, text[: min(found)]
        longest = max((_overlap(text, stop) for stop in self._stop_strings), default=0)
        if longest:
            text, self._held = text[:-longest], text[-longest:]
        return False, text


def _overlap(text: str, stop: str) -> int:
    """The length of the longest proper beginning of `stop` that `text` ends with."""
    for size in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0
