"""Streaming: pieces joined are the whole text, and no piece holds half a character."""

import functools
import itertools
from collections.abc import Sequence

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.test_tokenizer import sentence_piece, trained

from lope.models.detokenizer import Detokenizer
from lope.models.tokenizer import Tokenizer


@functools.cache
def make(kind: str) -> Tokenizer:
    if kind == "byte-level":
        return Tokenizer(trained())
    if kind == "sentence piece":
        return Tokenizer(sentence_piece())
    raw = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"[UNK]": 0, "ab": 1, "cd": 2, "é": 3, "\ufffd": 4}, "[UNK]")
    )
    raw.decoder = tokenizers.decoders.WordPiece()
    return Tokenizer(raw)


KINDS = ["byte-level", "sentence piece"]
TEXT = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("👍🏽日本語é \n\u200dकि")), max_size=40)


def pieces(tokenizer: Tokenizer, ids: Sequence[int], cuts: Sequence[int]) -> list[str]:
    """Feed the ids in the groups that the cuts make."""
    stream = Detokenizer(tokenizer)
    edges = [0, *sorted({cut % (len(ids) + 1) for cut in cuts}), len(ids)]
    said = [stream.feed(ids[start:stop]) for start, stop in itertools.pairwise(edges)]
    return [*said, stream.finish()]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=150)
@given(text=TEXT, cuts=st.lists(st.integers(0, 200), max_size=20))
def test_pieces_of_a_text_join_to_it(kind: str, text: str, cuts: list[int]) -> None:
    tokenizer = make(kind)
    ids = tokenizer.encode(text)
    said = pieces(tokenizer, ids, cuts)
    assert "".join(said) == tokenizer.decode(ids)
    if "\ufffd" not in text:
        assert not any("\ufffd" in piece for piece in said)


@pytest.mark.parametrize("kind", [*KINDS, "words"])
@settings(deadline=None, max_examples=150)
@given(data=st.data(), cuts=st.lists(st.integers(0, 200), max_size=20))
def test_pieces_of_any_tokens_join_to_their_decoding(kind: str, data: st.DataObject, cuts: list[int]) -> None:
    tokenizer = make(kind)
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size + 3), max_size=30))
    assert "".join(pieces(tokenizer, ids, cuts)) == tokenizer.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_a_character_is_emitted_with_its_last_byte(kind: str) -> None:
    tokenizer = make(kind)
    if kind == "byte-level":
        alphabet = {value: token for token in range(tokenizer.vocab_size) if len(value := tokenizer.pieces[token]) == 1}  # type: ignore[index]
        ids = [alphabet[bytes([byte])] for byte in "👍".encode()]
    else:
        ids = [tokenizer.token_id(f"<0x{byte:02X}>") or 0 for byte in "👍".encode()]
    stream = Detokenizer(tokenizer)
    assert [stream.feed([token]) for token in ids] == ["", "", "", "👍"]
    assert stream.finish() == ""
    cut = Detokenizer(tokenizer)
    assert cut.feed(ids[:2]) == ""
    assert cut.finish() == "\ufffd"


def test_the_prefix_space_of_sentence_piece_is_taken_off_once() -> None:
    tokenizer = make("sentence piece")
    ids = tokenizer.encode(" the cat")
    stream = Detokenizer(tokenizer)
    said = "".join(stream.feed([token]) for token in ids)
    assert said == " the cat"


def test_control_tokens_are_not_emitted() -> None:
    tokenizer = make("byte-level")
    ids = [0, *tokenizer.encode("cat"), 1]
    assert Detokenizer(tokenizer).feed(ids) == "cat"
    assert Detokenizer(tokenizer, skip_special=False).feed(ids) == "<|begin|>cat<|end|>"


class Impatient(Detokenizer):
    """Planted: emits bytes as they come."""

    def feed(self, tokens: Sequence[int]) -> str:  # type: ignore[override]
        table = self._tokenizer.pieces
        assert table is not None
        return b"".join(table[token] for token in tokens).decode("utf-8", errors="replace")


def test_planted_impatience_fails_the_law() -> None:
    tokenizer = make("byte-level")
    ids = tokenizer.encode("🦊🦊")
    stream = Impatient(tokenizer)
    assert len(ids) > 3
    assert "".join(stream.feed([token]) for token in ids) != tokenizer.decode(ids)
