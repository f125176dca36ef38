"""Where answers end: stop tokens, stop strings, limits; in accepted blocks, across tokens and passes."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.engine.scripted import END, TOKENIZER, engine, script_of

from lope.core.prompt import Path
from lope.engine.answer import Answer, FinishReason
from lope.engine.ending import TextEnding

TEXTS = st.text(st.sampled_from("ab c\nß漢🙂"), max_size=24)
STOPS = st.lists(st.text(st.sampled_from("ab c\nß漢🙂"), min_size=1, max_size=4), max_size=3)
SIZES = st.lists(st.integers(0, 6), max_size=4).map(tuple)


def say(script: Path, sizes: tuple[int, ...] = (), **settings: Any) -> Answer:
    """The answer; its pieces, checked to be the same text and tokens."""
    stream = engine(script, sizes=sizes).stream("go", raw=True, **settings)
    pieces = list(stream)
    answer = stream.answer
    assert "".join(piece.text for piece in pieces) == answer.text
    assert tuple(token for piece in pieces for token in piece.tokens) == answer.tokens
    return answer


def by_definition(script: Path, stops: list[str], limit: int) -> tuple[str, Path, FinishReason]:
    """Read token by token: the answer ends with the first token after which the text holds a stop string."""
    tokens = (*script, END)
    for count in range(1, len(tokens) + 1):
        text = TOKENIZER.decode(tokens[:count])
        whole = text.rstrip("\ufffd") if count < min(limit, len(tokens)) else text
        found = [whole.find(stop) for stop in stops if stop in whole]
        if found and tokens[count - 1] != END:
            return whole[: min(found)], tokens[:count], FinishReason.STOP_STRING
        if tokens[count - 1] == END:
            return text, tokens[:count], FinishReason.STOP
        if count == limit:
            return text, tokens[:count], FinishReason.LENGTH
    raise AssertionError("a script ends")


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, stops=STOPS, sizes=SIZES, limit=st.integers(1, 60))
@example(text="aab", stops=["ab"], sizes=(6,), limit=60)
@example(text="ababac", stops=["abac", "bab"], sizes=(2, 3), limit=60)
@example(text="x🙂y", stops=["🙂"], sizes=(3,), limit=60)
@example(text="ab", stops=["abc"], sizes=(4,), limit=60)
@example(text="🙂", stops=[], sizes=(), limit=2)
def test_the_answer_ends_where_the_definition_says(
    text: str, stops: list[str], sizes: tuple[int, ...], limit: int
) -> None:
    script = script_of(text)
    answer = say(script, sizes, stop_strings=stops, max_new_tokens=limit)
    assert (answer.text, answer.tokens, answer.finish_reason) == by_definition(script, stops, limit)


@pytest.mark.parametrize("sizes", [(), (1,), (3,), (50,)])
def test_a_stop_string_that_spans_tokens_and_passes_is_cut_exactly(sizes: tuple[int, ...]) -> None:
    script = script_of("one STOP two")
    answer = say(script, sizes, stop_strings=["STOP"])
    assert answer.text == "one "
    assert answer.tokens == script[: len("one STOP")]
    assert answer.finish_reason is FinishReason.STOP_STRING


def test_a_stop_string_that_ends_inside_a_token_is_cut_inside_it() -> None:
    word = TOKENIZER.token_id("stop")
    assert word is not None
    answer = say((*script_of("a "), word, *script_of("b")), (5,), stop_strings=["sto"])
    assert (answer.text, answer.tokens[-1]) == ("a ", word)


@pytest.mark.parametrize("sizes", [(), (2,), (50,)])
def test_nothing_comes_after_a_stop_token_inside_an_accepted_block(sizes: tuple[int, ...]) -> None:
    script = (*script_of("yes"), END, *script_of("no, never"))
    answer = say(script, sizes)
    assert (answer.text, answer.tokens, answer.finish_reason) == ("yes", script[:4], FinishReason.STOP)


@pytest.mark.parametrize("sizes", [(), (2,), (50,)])
def test_ignore_stop_goes_on_to_the_limit(sizes: tuple[int, ...]) -> None:
    script = (*script_of("yes"), END, *script_of("no"))
    answer = say(script, sizes, ignore_stop=True, max_new_tokens=6)
    assert (answer.text, answer.tokens, answer.finish_reason) == ("yesno", script, FinishReason.LENGTH)


def test_text_held_back_for_a_stop_string_comes_out_where_the_answer_ends_otherwise() -> None:
    assert say(script_of("ab"), (5,), stop_strings=["abc"]).text == "ab"
    assert say(script_of("abx"), (), stop_strings=["abc"], max_new_tokens=2).text == "ab"


def test_half_a_character_at_the_limit_is_a_replacement_character() -> None:
    answer = say(script_of("é🙂"), (), max_new_tokens=4)
    assert answer.text == "é\ufffd"


def test_pieces_never_show_the_beginning_of_a_stop_string() -> None:
    shown = ""
    for piece in engine(script_of("aabab")).stream("go", raw=True, stop_strings=["abab"]):
        shown += piece.text
        assert "aabab".startswith(shown)
        assert len(shown) <= 1


def test_an_ending_counts_down() -> None:
    ending = TextEnding(TOKENIZER, stop_tokens=frozenset({END}), stop_strings=(), max_new_tokens=3)
    assert ending.left == 3
    assert ending.feed(script_of("ab")) == (2, "ab")
    assert (ending.left, ending.reason) == (1, None)
    assert ending.feed(script_of("cde")) == (1, "c")
    assert ending.reason is FinishReason.LENGTH
