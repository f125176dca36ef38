"""Tokens to text while they arrive: what is emitted is final, and never half a character."""

import codecs
from collections.abc import Iterable

from lope.models.tokenizer import Tokenizer


class Detokenizer:
    """Decodes one answer piece by piece: the pieces joined equal `tokenizer.decode` of all its tokens.

    A character whose bytes are spread over tokens is held back until it is whole; `finish` gives what is left.
    """

    def __init__(self, tokenizer: Tokenizer, *, skip_special: bool = True) -> None:
        self._tokenizer = tokenizer
        self._skipped = tokenizer.special_ids if skip_special else frozenset()
        self._skip_special = skip_special
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._strips = 0 if tokenizer.pieces is None else tokenizer.pieces.strips
        self._tokens: list[int] = []
        self._emitted = ""

    def feed(self, tokens: Iterable[int]) -> str:
        """The text that these tokens complete; empty while a character is unfinished."""
        pieces = self._tokenizer.pieces
        if pieces is None:
            self._tokens += tokens
            return self._whole(self._tokenizer.decode(self._tokens, skip_special=self._skip_special), final=False)
        data = b"".join(pieces[token] for token in tokens if token not in self._skipped)
        if self._strips and data:
            spaces = min(self._strips, len(data) - len(data.lstrip(b" ")))
            self._strips = self._strips - spaces if spaces == len(data) else 0
            data = data[spaces:]
        return self._utf8.decode(data)

    def finish(self) -> str:
        """What is left: U+FFFD for a character that never became whole."""
        if self._tokenizer.pieces is None:
            return self._whole(self._tokenizer.decode(self._tokens, skip_special=self._skip_special), final=True)
        return self._utf8.decode(b"", final=True)

    def _whole(self, text: str, *, final: bool) -> str:
        """For a decoder whose tokens have no bytes of their own: decode all, emit what can no longer change."""
        stable = text if final else text.rstrip("\ufffd")
        piece = stable[len(self._emitted) :] if stable.startswith(self._emitted) else ""
        self._emitted += piece
        return piece
