"""Which bytes a token stands for: what makes decoding a plain concatenation, and streaming exact.

Two kinds of decoder have such bytes: byte-level BPE (GPT-2, Llama 3, Qwen, SmolLM), whose alphabet spells every byte as
a printable character, and SentencePiece (Llama 2, Mistral), which writes `▁` for a space and `<0xE4>` for a byte.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import tokenizers

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class TokenBytes:
    """The bytes of every id of one vocabulary.

    strips: how many leading spaces the decoder takes off a whole text (SentencePiece puts one before the first word).
    """

    def __init__(self, raw: tokenizers.Tokenizer, *, byte_level: bool, byte_fallback: bool, strips: int) -> None:
        self._raw = raw
        self._added = {token: added.content for token, added in raw.get_added_tokens_decoder().items()}
        self._alphabet = _byte_alphabet() if byte_level else None
        self._byte_fallback = byte_fallback
        self._known: dict[int, bytes] = {}
        self.strips = strips

    def __getitem__(self, token: int) -> bytes:
        if token not in self._known:
            self._known[token] = self._spell(token)
        return self._known[token]

    def join(self, ids: Iterable[int]) -> bytes:
        """The bytes of a whole text: leading spaces that the decoder takes off are off."""
        text = b"".join(self[token] for token in ids)
        spaces = len(text) - len(text.lstrip(b" "))
        return text[min(spaces, self.strips) :]

    def _spell(self, token: int) -> bytes:
        text = self._raw.id_to_token(token)
        if text is None:  # a padding row of the embedding
            return b""
        if self._alphabet is not None:
            known = [self._alphabet.get(character) for character in text]
            spelled = [byte for byte in known if byte is not None]
            return bytes(spelled) if len(spelled) == len(known) else text.encode()
        byte = _BYTE.fullmatch(text) if self._byte_fallback else None
        return bytes([int(byte.group(1), 16)]) if byte else text.replace("▁", " ").encode()


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's alphabet (Radford et al. 2019): printable bytes stand for themselves, the rest are shifted past 255."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(others)}


def token_bytes(raw: tokenizers.Tokenizer) -> TokenBytes | None:
    """The bytes of a tokenizer's tokens, or None where its decoder is of another kind."""
    decoder: dict[str, Any] | None = json.loads(raw.decoder.__getstate__()) if raw.decoder is not None else None
    steps = [] if decoder is None else decoder["decoders"] if decoder["type"] == "Sequence" else [decoder]
    kinds = [step["type"] for step in steps]
    if kinds == ["ByteLevel"]:
        return TokenBytes(raw, byte_level=True, byte_fallback=False, strips=0)
    replaced = [step for step in steps if step["type"] == "Replace"]
    spaces = all(step["pattern"] == {"String": "▁"} and step["content"] == " " for step in replaced)
    strips = [step for step in steps if step["type"] == "Strip"]
    plain = all(step["content"] == " " and step["stop"] == 0 for step in strips)
    if len(replaced) == 1 and spaces and plain and set(kinds) <= {"Replace", "ByteFallback", "Fuse", "Strip"}:
        fused = "Fuse" in kinds or not strips
        if fused:
            return TokenBytes(
                raw,
                byte_level=False,
                byte_fallback="ByteFallback" in kinds,
                strips=sum(step["start"] for step in strips),
            )
    if kinds == ["Metaspace"] and decoder is not None and decoder.get("replacement") == "▁":
        first = decoder.get("prepend_scheme", "always") != "never"
        return TokenBytes(raw, byte_level=False, byte_fallback=False, strips=int(first))
    return None
