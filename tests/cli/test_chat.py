"""`lope chat`: one line a turn; with --json all turns in one document."""

import pytest
from tests.cli.calling import Caller

from lope.engine.engine import Stream

SHORT = ("--max-new-tokens", "6")
Tiny = tuple[str, ...]


def test_turns_are_answered_until_an_empty_line(lope: Caller, tiny: Tiny) -> None:
    called = lope("chat", *tiny, *SHORT, "--json", stdin=b"the cat\nthe dog\n\nnever read\n")
    turns = called.document["turns"]
    assert called.code == 0
    assert [turn["user"] for turn in turns] == ["the cat", "the dog"]
    assert turns[0]["reused_tokens"] == 0
    assert turns[1]["reused_tokens"] == turns[0]["prompt_tokens"] + turns[0]["num_tokens"]


def test_the_end_of_stdin_ends_it(lope: Caller, tiny: Tiny) -> None:
    assert len(lope("chat", *tiny, *SHORT, "--json", stdin=b"the cat").document["turns"]) == 1
    assert lope("chat", *tiny, *SHORT, "--json").document == {"turns": []}


def test_answers_go_to_stdout_and_figures_to_stderr(lope: Caller, tiny: Tiny) -> None:
    turns = lope("chat", *tiny, *SHORT, "--json", stdin=b"the cat\nthe dog\n").document["turns"]
    called = lope("chat", *tiny, *SHORT, stdin=b"the cat\nthe dog\n")
    assert called.out == "".join(turn["text"] + "\n" for turn in turns)
    assert called.err.count("tokens per pass") == 2


def test_speculation_does_not_change_a_conversation(lope: Caller, tiny: Tiny) -> None:
    spoken = b"the cat sat\nthe cat sat on\nthe mat\n"
    texts = []
    for name in ("none", "ngram", "truncated:layers=2"):
        called = lope("chat", *tiny, *SHORT, "--json", "--drafter", name, stdin=spoken)
        texts.append([turn["text"] for turn in called.document["turns"]])
    assert len(texts[0]) == 3
    assert texts[0] == texts[1] == texts[2]


def test_a_turn_that_does_not_fit_is_refused_and_the_next_is_answered(lope: Caller, tiny: Tiny) -> None:
    called = lope("chat", *tiny, *SHORT, stdin=b"the cat\n" + b"zx " * 200 + b"\nthe dog\n")
    assert called.code == 0
    assert called.out.count("\n") == 2
    assert "context" in called.err


def test_with_json_a_turn_that_does_not_fit_ends_it_with_what_there_is(lope: Caller, tiny: Tiny) -> None:
    called = lope("chat", *tiny, *SHORT, "--json", stdin=b"the cat\n" + b"zx " * 200 + b"\nthe dog\n")
    assert called.code == 2
    assert "context" in called.document["error"]
    assert len(called.document["turns"]) == 1


def test_stdin_that_is_not_utf_8_is_refused(lope: Caller, tiny: Tiny) -> None:
    called = lope("chat", *tiny, *SHORT, "--json", stdin=b"caf\xe9\n")
    assert called.code == 2
    assert called.document["error"] == "stdin is not valid UTF-8"


def test_a_bad_setting_is_refused_before_the_first_turn(lope: Caller, tiny: Tiny) -> None:
    called = lope("chat", *tiny, "--top-p", "2", "--json", stdin=b"the cat\n")
    assert called.code == 2
    assert "top_p" in called.document["error"]


def test_ctrl_c_breaks_a_turn_off_and_the_conversation_goes_on(
    lope: Caller, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    iterate = Stream.__iter__
    pieces = []

    def pressed(self: Stream) -> object:
        for piece in iterate(self):
            pieces.append(piece)
            if len(pieces) == 3:
                raise KeyboardInterrupt
            yield piece

    monkeypatch.setattr(Stream, "__iter__", pressed)
    called = lope("chat", *tiny, *SHORT, "--json", "--drafter", "none", stdin=b"the cat\nthe dog\n")
    turns = called.document["turns"]
    assert called.code == 0
    assert [turn["user"] for turn in turns] == ["the cat", "the dog"]
    assert turns[0]["num_tokens"] == 3
