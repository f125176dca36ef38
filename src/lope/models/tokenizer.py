"""Text to token ids and back, by way of the `tokenizers` library."""

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import tokenizers

from lope.core.errors import ModelError
from lope.models.token_bytes import TokenBytes, token_bytes


class Tokenizer:
    """A vocabulary with its rules. Ids are those of the model's embedding rows.

    raw:       the `tokenizers.Tokenizer` that does the work.
    bos, eos:  the special ids that the model's files name, or None.
    """

    def __init__(self, raw: tokenizers.Tokenizer, *, bos: int | None = None, eos: int | None = None) -> None:
        raw.no_truncation()
        raw.no_padding()
        self.raw = raw
        self.bos = bos
        self.eos = eos

    @classmethod
    def from_file(cls, path: Path, *, bos: str | None = None, eos: str | None = None) -> "Tokenizer":
        """Read a `tokenizer.json`. bos, eos: their texts, from `tokenizer_config.json`. Raises ModelError."""
        try:
            raw = tokenizers.Tokenizer.from_buffer(path.read_bytes())
        except OSError as error:
            raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
        except Exception as error:  # noqa: BLE001 - the library raises bare Exception for every fault of the file
            raise ModelError(
                f"{path}: is not a tokenizer.json that this machine's tokenizers can read: {error}"
            ) from None
        ids = {name: raw.token_to_id(text) if text else None for name, text in (("bos", bos), ("eos", eos))}
        return cls(raw, **ids)

    @cached_property
    def vocab_size(self) -> int:
        """One more than the highest id: how many rows of the embedding have a text."""
        return max(self.raw.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids of control tokens: never part of the text of an answer."""
        return frozenset(token for token, added in self.raw.get_added_tokens_decoder().items() if added.special)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of what text becomes which ids: vocabulary, special tokens among it, and merges.

        Two models with equal fingerprints speak of the same tokens; padding rows of an embedding do not count.
        """
        model = json.loads(self.raw.to_str())["model"]
        merges = [
            tuple(pair.split(" ", 1)) if isinstance(pair, str) else tuple(pair) for pair in model.get("merges", [])
        ]
        vocabulary = sorted((token, text) for text, token in self.raw.get_vocab(with_added_tokens=True).items())
        content = json.dumps([vocabulary, merges], ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(content.encode()).hexdigest()

    def encode(self, text: str, *, add_special: bool = False) -> tuple[int, ...]:
        """The ids of a text. add_special: with the tokens that the model wants around one (a begin token, say)."""
        return tuple(self.raw.encode(text, add_special_tokens=add_special).ids)

    def decode(self, ids: Sequence[int], *, skip_special: bool = True) -> str:
        """The text of ids; bytes that are no UTF-8 become U+FFFD, ids without text (padding rows) add nothing.

        skip_special: leave control tokens out.
        """
        if self.pieces is None:
            return str(self.raw.decode(list(ids), skip_special_tokens=skip_special))
        kept = (token for token in ids if not (skip_special and token in self.special_ids))
        return self.pieces.join(kept).decode("utf-8", errors="replace")

    def token_text(self, token: int) -> str:
        """The token as the vocabulary spells it (`Ġthe`, `▁the`, `<0xE4>`); empty for an id without text."""
        return self.raw.id_to_token(token) or ""

    def token_id(self, text: str) -> int | None:
        """The id of a token spelled as the vocabulary spells it, or None."""
        found = self.raw.token_to_id(text)
        return None if found is None else int(found)

    @cached_property
    def pieces(self) -> TokenBytes | None:
        """Each token's bytes, where the decoder is one of the two kinds that have them; else None."""
        return token_bytes(self.raw)
