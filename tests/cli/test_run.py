"""`lope run`: one answer, as text or as one JSON document; bad input is one clear line and exit code 2."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.calling import Caller

from lope.core.errors import DraftError
from lope.drafters.ngram import NgramDrafter
from lope.engine.engine import Stream

KEYS = {
    "text", "tokens", "num_tokens", "passes", "tokens_per_pass", "drafted", "accepted", "seconds", "tokens_per_second",
    "time_to_first_token", "finish_reason", "model", "drafter", "shape", "verifier", "policy", "draft_stop", "seed",
    "dtype", "threads", "lope_version",
}  # fmt: skip
SHORT = ("--max-new-tokens", "8")
Tiny = tuple[str, ...]


def test_json_is_one_document_with_everything_in_it(lope: Caller, tiny: Tiny) -> None:
    called = lope("run", "the cat", *tiny, *SHORT, "--json", "--seed", "3")
    document = called.document
    assert called.code == 0
    assert document.keys() >= KEYS
    assert document["num_tokens"] == len(document["tokens"]) <= 8
    assert (document["seed"], document["verifier"], document["dtype"], document["drafter"]) == (
        3,
        "greedy",
        "float32",
        "ngram",
    )
    assert document["finish_reason"] in ("stop", "length")
    assert "error" not in document
    assert "logprobs" not in document


def test_text_goes_to_stdout_and_figures_to_stderr(lope: Caller, tiny: Tiny) -> None:
    document = lope("run", "the cat", *tiny, *SHORT, "--json").document
    called = lope("run", "the cat", *tiny, *SHORT)
    assert called.code == 0
    assert called.out == document["text"] + "\n"
    assert "tokens per pass" in called.err


@pytest.mark.parametrize(
    "parts",
    [
        ("--drafter", "none"),
        ("--drafter", "ngram:max_ngram=3"),
        ("--drafter", "truncated:layers=2"),
        ("--drafter", "truncated:layers=2", "--shape", "rsd_c:branching=2-2"),
        (
            "--drafter",
            "truncated:layers=2",
            "--shape",
            "rsd_s",
            "--draft-stop",
            "max_confidence",
            "--policy",
            "heuristic",
        ),
    ],
    ids=" ".join,
)
def test_every_drafter_says_the_same(parts: tuple[str, ...], lope: Caller, tiny: Tiny) -> None:
    plain = lope("run", "the cat sat", *tiny, "--max-new-tokens", "20", "--json", "--drafter", "none").document
    document = lope("run", "the cat sat", *tiny, "--max-new-tokens", "20", "--json", *parts, "--exact").document
    assert document["tokens"] == plain["tokens"]
    assert plain["tokens_per_pass"] == 1.0
    assert document["exact"] is True


def test_a_seed_repeats_an_answer_and_log_probabilities_come_with_it(lope: Caller, tiny: Tiny) -> None:
    sampled = (
        "--temperature",
        "0.9",
        "--top-p",
        "0.95",
        "--top-k",
        "50",
        "--min-p",
        "0.01",
        "--repetition-penalty",
        "1.1",
    )
    first = lope("run", "the cat", *tiny, *SHORT, *sampled, "--json", "--logprobs").document
    again = lope("run", "the cat", *tiny, *SHORT, *sampled, "--json", "--seed", str(first["seed"])).document
    assert again["tokens"] == first["tokens"]
    assert len(first["logprobs"]) == first["num_tokens"]
    assert all(value < 0.0 for value in first["logprobs"])
    assert first["verifier"] == "coupled"


def test_stop_strings_are_cut_off(lope: Caller, tiny: Tiny) -> None:
    whole = lope("run", "the cat", *tiny, "--max-new-tokens", "30", "--json").document
    stop = whole["text"][6:8]
    document = lope(
        "run", "the cat", *tiny, "--max-new-tokens", "30", "--json", "--stop-string", "@@", "--stop-string", stop
    ).document
    assert document["text"] == whole["text"][: whole["text"].find(stop)]
    assert document["finish_reason"] == "stop_string"


def test_the_prompt_can_come_from_stdin(lope: Caller, tiny: Tiny) -> None:
    asked = lope("run", "thé cat", *tiny, *SHORT, "--json").document
    piped = lope("run", "-", *tiny, *SHORT, "--json", stdin="thé cat".encode()).document
    assert piped["tokens"] == asked["tokens"]


def test_raw_goes_on_from_the_bare_text(lope: Caller, tiny: Tiny) -> None:
    asked = lope("run", "the cat", *tiny, *SHORT, "--json").document
    bare = lope("run", "the cat", *tiny, *SHORT, "--json", "--raw").document
    assert bare["prompt_tokens"] < asked["prompt_tokens"]


def test_drafted_tokens_can_be_shown_without_changing_the_text(lope: Caller, tiny: Tiny) -> None:
    called = lope("run", "the cat", *tiny, *SHORT)
    assert lope("run", "the cat", *tiny, *SHORT, "--show-drafted").out == called.out


BAD: list[tuple[tuple[str, ...], str]] = [
    (("",), "the prompt is empty"),
    (("  ",), "the prompt is empty"),
    (("", "--raw"), "the prompt is empty"),
    (("zx " * 200,), "the model's context holds 256"),
    (("hi", "--raw", "--system", "be brief"), "raw takes one text"),
    (("hi", "--max-new-tokens", "0"), "max_new_tokens must be at least 1, not 0"),
    (("hi", "--max-new-tokens", "-5"), "max_new_tokens must be at least 1, not -5"),
    (("hi", "--temperature", "nan"), "temperature must lie between 0 and 100, not nan"),
    (("hi", "--temperature", "-1"), "temperature must lie between 0 and 100, not -1"),
    (("hi", "--top-k", "0"), "top_k must be at least 1, not 0"),
    (("hi", "--top-p", "1.1"), "top_p must lie between 0 and 1, not 1.1"),
    (("hi", "--min-p", "nan"), "min_p must lie between 0 and 1, not nan"),
    (("hi", "--repetition-penalty", "0"), "repetition_penalty must be a finite number above 0, not 0"),
    (("hi", "--seed", "-1"), "seed must be at least 0, not -1"),
    (("hi", "--stop-string", ""), "a stop string must not be empty"),
    (("hi", "--threads", "0"), "threads must"),
    (("hi", "--drafter", "ngrm"), "did you mean 'ngram'?"),
    (("hi", "--drafter", "ngram:max_ngram=x"), "takes int, not 'x'"),
    (("hi", "--drafter", "truncated"), "truncated needs layers"),
    (("hi", "--shape", "bush", "--drafter", "truncated:layers=1"), "there are: chain, rsd_c, rsd_s, independent"),
    (("hi", "--verifier", "greedy", "--temperature", "1"), "without changing the answer"),
    (("hi", "--policy", "fixedd"), "did you mean 'fixed'?"),
    (("hi", "--on-draft-error", "ignore"), "'fail' or 'fall-back', not 'ignore'"),
    (("hi", "--device", "toaster"), "device 'toaster' cannot be used here"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=str)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    arguments: tuple[str, ...], says: str, lope: Caller, tiny: Tiny
) -> None:
    called = lope("run", *tiny, *arguments)
    assert called.code == 2
    assert says in called.complaint
    assert called.out == ""
    as_json = lope("run", *tiny, *arguments, "--json")
    assert as_json.code == 2
    assert says in as_json.document["error"]


@pytest.mark.parametrize("model", ["/no/such/folder", "no-such-model.gguf"])
def test_a_model_that_is_not_there_is_one_clear_line(model: str, lope: Caller) -> None:
    called = lope("run", "hi", "--model", model)
    assert called.code == 2
    assert model in called.complaint


def test_an_unknown_dtype_lists_the_right_ones(lope: Caller, tiny: Tiny) -> None:
    called = lope("run", "hi", *tiny, "--dtype", "float12")
    assert called.code == 2
    assert "bfloat16" in called.complaint


def test_stdin_that_is_not_utf_8_is_refused(lope: Caller, tiny: Tiny) -> None:
    called = lope("run", "-", *tiny, stdin=b"caf\xe9 au lait")
    assert called.code == 2
    assert called.complaint == "stdin is not valid UTF-8 (byte 3)"


def test_a_prompt_argument_that_is_not_utf_8_is_refused(lope: Caller, tiny: Tiny) -> None:
    called = lope("run", "caf\udce9", *tiny)
    assert called.code == 2
    assert "not valid UTF-8" in called.complaint


def test_a_template_that_raises_is_one_clear_line(
    lope: Caller, tiny_folder: Callable[..., Path], tmp_path: Path
) -> None:
    for file in tiny_folder("llama3").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "chat_template.jinja").write_text("{{ raise_exception('only the [b]system[/b] may speak') }}")
    called = lope("run", "hi", "--model", str(tmp_path), "--dtype", "float32")
    assert called.code == 2
    assert "only the [b]system[/b] may speak" in called.complaint


def test_a_drafter_that_fails_ends_the_run_with_code_1_and_what_there_is(
    lope: Caller, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: NgramDrafter, asks: object) -> None:
        raise RuntimeError("out of ideas")

    monkeypatch.setattr(NgramDrafter, "propose", fail)
    called = lope("run", "the cat", *tiny, *SHORT, "--json")
    assert called.code == DraftError.exit_code == 1
    assert "RuntimeError: out of ideas" in called.document["error"]
    allowed = lope("run", "the cat", *tiny, *SHORT, "--json", "--on-draft-error", "fall-back")
    assert allowed.code == 0
    assert "out of ideas" in allowed.document["draft_error"]
    plain = lope("run", "the cat", *tiny, *SHORT, "--json", "--drafter", "none").document
    assert allowed.document["tokens"] == plain["tokens"]
    said = lope("run", "the cat", *tiny, *SHORT, "--on-draft-error", "fall-back").err
    assert said.count("out of ideas") == 1


def test_ctrl_c_keeps_what_was_said(lope: Caller, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = lope("run", "the cat", *tiny, *SHORT, "--json", "--drafter", "none").document
    iterate = Stream.__iter__

    def pressed(self: Stream) -> object:
        for number, piece in enumerate(iterate(self)):
            if number == 3:
                raise KeyboardInterrupt
            yield piece

    monkeypatch.setattr(Stream, "__iter__", pressed)
    called = lope("run", "the cat", *tiny, *SHORT, "--json", "--drafter", "none")
    assert called.code == 130
    assert called.document["interrupted"] is True
    assert called.document["tokens"] == whole["tokens"][:4]
