"""`lope drafter distill` on a tiny model: what it prints and writes, how it goes on, and what it refuses."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.cli.calling import Caller

from lope.cli.distill_run import DistillRun
from lope.training.distilled_set import DistilledSet
from lope.training.distiller import Progress
from lope.training.token_archive import TokenArchive


@pytest.fixture
def words(tiny_folder: Callable[..., Path], tmp_path: Path) -> list[str]:
    """A command without what says how much."""
    prompts = tmp_path / "prompts.jsonl"
    rows = [{"prompt": f"the cat sat on {thing}"} for thing in ("the mat", "a dog", "the cat", "nothing", "the end")]
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    model = ["--target", str(tiny_folder("llama3")), "--dtype", "float32", "--threads", "1"]
    shape = ["--max-new-tokens", "12", "--width", "4", "--layers", "1-3", "--top-k", "20"]
    return ["drafter", "distill", *model, *shape, "--prompts", str(prompts), "--out", str(tmp_path / "set")]


def test_the_document_and_the_set(words: list[str], tmp_path: Path, lope: Caller) -> None:
    called = lope(*words, "--tokens", "60", "--json")
    assert called.code == 0
    found = called.document
    place = DistilledSet.open(tmp_path / "set")
    assert (found["sequences"], found["tokens"], found["answer_tokens"]) == place.sizes()
    assert 60 <= found["answer_tokens"] == found["new_answer_tokens"]
    assert (found["layers"], found["top_k"], found["temperatures"]) == ([1, 3], 20, [0.0, 0.7, 1.0])
    assert 0.0 < found["outside"] < 1.0
    assert found["tokens_per_second"] > 0
    assert found["shards"] == 1
    assert found["mended"] == []
    assert place.manifest.prompts_sha256
    assert place.manifest.dtype == "float32"


def test_the_same_command_goes_on_until_the_set_has_enough(words: list[str], tmp_path: Path, lope: Caller) -> None:
    first = lope(*words, "--tokens", "30", "--json").document
    second = lope(*words, "--tokens", "70", "--json").document
    assert second["answer_tokens"] == first["answer_tokens"] + second["new_answer_tokens"] >= 70
    third = lope(*words, "--tokens", "70", "--json").document
    assert third["new_answer_tokens"] == 0
    assert third["answer_tokens"] == second["answer_tokens"]
    assert len(DistilledSet.open(tmp_path / "set").numbers()) == third["sequences"]
    refused = lope(*words, "--tokens", "70", "--seed", "3")
    assert refused.code == 2
    assert "was begun with another seed (0, now 3): go on with the same settings" in refused.complaint


def test_the_target_writes_prompts_and_the_number_kept_is_measured(
    words: list[str], tmp_path: Path, lope: Caller
) -> None:
    own = [*words, "--prompts", "own", "--top-k", "auto", "--layers", "auto", "--minutes", "0.2", "--tokens", "20"]
    called = lope(*own)
    assert called.code == 0
    about = DistilledSet.open(tmp_path / "set").manifest
    assert about.prompts == "own"
    assert about.layers == (), "a target of three layers"
    assert f"the {about.top_k} most probable tokens of each place are kept: " in called.complaint
    assert "sequences" in called.out
    assert "of the probability lies outside" in called.out
    assert about.outside is not None
    assert lope(*own, "--json").document["top_k"] == about.top_k


def test_a_run_that_finishes_nothing_says_so(words: list[str], lope: Caller) -> None:
    brief = [*words, "--top-k", "auto", "--minutes", "1e-9"]
    called = lope(*brief)
    assert called.code == 0
    assert "no answer was finished in that time" in called.complaint
    assert "a second" not in called.out
    assert "lies outside" not in called.out
    found = lope(*brief, "--json").document
    assert (found["sequences"], found["top_k"], found["outside"]) == (0, None, None)


def test_an_empty_set_takes_other_settings(words: list[str], lope: Caller) -> None:
    assert lope(*words, "--minutes", "1e-9").code == 0
    called = lope(*words, "--tokens", "20", "--max-new-tokens", "5", "--json")
    assert called.code == 0
    assert called.document["answer_tokens"] >= 20


def test_processes_of_a_launcher_are_refused(
    words: list[str], tmp_path: Path, lope: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    called = lope(*words, "--tokens", "20")
    assert called.code == 2
    assert "one process distils: begin it without a launcher" in called.complaint
    assert not (tmp_path / "set").exists()


def test_prompts_that_are_all_too_long_are_said_to_be(words: list[str], tmp_path: Path, lope: Caller) -> None:
    (tmp_path / "long.txt").write_text("the cat sat on the mat " * 2000)
    called = lope(*words, "--prompts", str(tmp_path / "long.txt"), "--tokens", "20")
    assert called.code == 1
    assert "every prompt of long.txt has more than" in called.complaint
    assert "kept" not in called.complaint


def test_tokens_are_packed_and_computed_again(words: list[str], tmp_path: Path, lope: Caller) -> None:
    archive, again = tmp_path / "tokens.xz", str(tmp_path / "again")
    packed = lope(*words, "--tokens", "60", "--to-tokens", str(archive), "--json").document
    assert packed["archive_bytes"] == archive.stat().st_size
    assert packed["archived_sequences"] == packed["sequences"]
    before = archive.read_bytes()
    only = lope("drafter", "distill", "--out", str(tmp_path / "set"), "--to-tokens", str(archive))
    assert only.code == 0
    assert archive.read_bytes() == before
    assert str(archive) in only.out
    replay = [*words[:6], *words[6:8], "--out", again, "--from-tokens", str(archive)]
    part = lope(*replay, "--tokens", "1", "--json").document
    assert part["sequences"] > 0
    whole = lope(*replay, "--json").document
    assert (whole["answer_tokens"], whole["layers"], whole["top_k"]) == (packed["answer_tokens"], [1, 3], 20)
    for one, other in zip(TokenArchive.read(archive).texts, DistilledSet.open(Path(again)).texts(), strict=True):
        assert torch.equal(one.tokens, other.tokens)
    other = lope(*replay, "--layers", "none", "--top-k", "5", "--out", f"{again}2", "--json").document
    assert (other["layers"], other["top_k"]) == ([], 5)
    refused = lope(*replay, "--temperatures", "0", "--top-p", "0.9")
    assert refused.code == 2
    assert "leave out --temperatures, --top-p" in refused.complaint


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([], "say how much to distil: --tokens N, or --minutes M, or both"),
        (["--tokens", "0"], "--tokens must be at least 1"),
        (["--minutes", "0"], "--minutes must be a finite number above 0"),
        (["--tokens", "9", "--temperatures", "0,warm"], "--temperatures are numbers separated by commas"),
        (["--tokens", "9", "--temperatures", "-1"], "temperature must lie between 0 and 100"),
        (["--tokens", "9", "--top-p", "2"], "top_p must lie between 0 and 1"),
        (["--tokens", "9", "--max-new-tokens", "0"], "max_new_tokens must be at least 1"),
        (["--tokens", "9", "--width", "0"], "width must be at least 1"),
        (["--tokens", "9", "--layers", "2-4"], "--layers are none, auto, or numbers from 0 to 3"),
        (["--tokens", "9", "--layers", "2,3"], "--layers are none, auto, or numbers from 0 to 3"),
        (["--tokens", "9", "--top-k", "most"], "--top-k is auto or a whole number of at least 1"),
        (["--tokens", "9", "--top-k", "9999"], "--top-k must lie between 0 and"),
        (["--tokens", "9", "--prompts", "/no/such/file"], "/no/such/file: cannot be read: No such file"),
        (["--tokens", "9", "--out", "/dev/null/set"], "/dev/null/set: cannot be written: Not a directory"),
        (["--to-tokens", "x.xz", "--out", "/no/such/set"], "/no/such/set: is not a distilled set"),
        (["--from-tokens", "/no/such/file"], "leave out --prompts"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(
    words: list[str], given: list[str], error: str, tmp_path: Path, lope: Caller
) -> None:
    called = lope(*words, *given, "--json")
    assert called.code in (1, 2)
    assert error in called.document["error"]
    assert error in called.complaint
    assert not (tmp_path / "set").exists()


def test_prompts_that_run_out_are_one_line_and_the_work_is_kept(words: list[str], tmp_path: Path, lope: Caller) -> None:
    called = lope(*words, "--tokens", "100000", "--temperatures", "0", "--json")
    assert called.code == 1
    assert "has had its greedy answer: give more prompts, or temperatures above 0" in called.document["error"]
    assert called.document["sequences"] == DistilledSet.open(tmp_path / "set").sizes()[0] == 5


def test_a_damaged_shard_is_set_aside_in_one_line(words: list[str], tmp_path: Path, lope: Caller) -> None:
    lope(*words, "--tokens", "30")
    (shard,) = DistilledSet.open(tmp_path / "set").shards
    shard.write_bytes(shard.read_bytes()[:-100])
    refused = lope("drafter", "distill", "--out", str(tmp_path / "set"), "--to-tokens", str(tmp_path / "x.xz"))
    assert refused.code == 2
    assert "is not a whole shard" in refused.complaint
    called = lope(*words, "--tokens", "30")
    assert called.code == 0
    assert "it is set aside as shard-00000.damaged, and its work is done again" in called.complaint
    assert DistilledSet.open(tmp_path / "set").sizes()[2] >= 30


def test_two_runs_in_one_folder_are_refused(words: list[str], tmp_path: Path, lope: Caller) -> None:
    lope(*words, "--tokens", "10")
    held = DistilledSet.begin(tmp_path / "set", DistilledSet.open(tmp_path / "set").manifest)
    called = lope(*words, "--tokens", "90")
    assert called.code == 2
    assert "another run is writing its results there" in called.complaint
    held.close()
    assert lope(*words, "--tokens", "90").code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_from_outside_goes_on(
    words: list[str], number: signal.Signals, tmp_path: Path, lope: Caller
) -> None:
    words += ["--temperatures", "1"]
    endless = [sys.executable, "-m", "lope", *words, "--minutes", "5"]
    run = subprocess.Popen(endless, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONHASHSEED": "1"})
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not (tmp_path / "set" / "manifest.json").exists():
        time.sleep(0.05)
    time.sleep(5.0)
    run.send_signal(number)
    _, said = run.communicate(timeout=300)
    assert "Traceback" not in said
    if number == signal.SIGINT:
        assert run.returncode == 130
        assert "interrupted: what was finished is kept, and the same command goes on from there" in said
        assert DistilledSet.open(tmp_path / "set").sizes()[0] > 0
    kept = {text.number: text.tokens.tolist() for text in DistilledSet.open(tmp_path / "set").texts()}
    called = lope(*words, "--tokens", str(200 + sum(map(len, kept.values()))), "--json")
    assert called.code == 0
    texts = list(DistilledSet.open(tmp_path / "set").texts())
    found = {text.number: text.tokens.tolist() for text in texts}
    assert kept.items() <= found.items()
    assert len(texts) == len(found) == len({tuple(tokens) for tokens in found.values()}) > len(kept)


def _run(place: DistilledSet, limit: int | None, minutes: float | None) -> DistillRun:
    return DistillRun(place, None, limit, minutes)


def test_the_bar_says_how_long_it_will_take(words: list[str], tmp_path: Path, lope: Caller) -> None:
    before = lope(*words, "--tokens", "30", "--json").document["answer_tokens"]
    place = DistilledSet.open(tmp_path / "set")
    progress = Progress(sequences=3, tokens=100, live=20, seconds=10.0)
    assert progress.pace == 12.0
    by_tokens = _run(place, before + 220, None)
    assert by_tokens.done(progress) == pytest.approx((before + 100) / (before + 220))
    assert by_tokens.left(progress) == pytest.approx(10.0)
    assert by_tokens.words(progress) == f"{before + 100} answer tokens (and 20 unfinished) · 12 tokens/s · 0:10 left"
    by_minutes = _run(place, None, 2.0)
    assert by_minutes.done(progress) == pytest.approx(10 / 120)
    assert by_minutes.words(progress) == f"{before + 100} answer tokens (and 20 unfinished) · 12 tokens/s · 1:50 left"
    assert _run(place, before + 220, 2.0).left(progress) == pytest.approx(10.0)
    assert _run(place, before + 220, None).words(Progress()) == f"{before} answer tokens · 0 tokens/s"


def test_a_target_reads_a_text_and_thinks_of_every_token(
    tiny_folder: Callable[..., Path], tmp_path: Path, lope: Caller
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat and the dog ran after the cat and the mat\n" * 4, encoding="utf-8")
    model = ["--target", str(tiny_folder("llama3")), "--dtype", "float32", "--threads", "1"]
    words = ["drafter", "distill", *model, "--layers", "1-3", "--out", str(tmp_path / "set"), "--from-text", str(text)]
    found = lope(*words, "--length", "16", "--top-k", "8", "--json").document
    place = DistilledSet.open(tmp_path / "set")
    assert (found["sequences"], found["tokens"], found["answer_tokens"]) == place.sizes()
    assert found["answer_tokens"] == found["tokens"] - found["sequences"], "all but the first token of each"
    for sequence in place.read():
        assert sequence.prompt == 1
        assert sequence.features is not None
        assert len(sequence.top_ids) == len(sequence.tokens) - 1
    assert lope(*words, "--length", "16", "--top-k", "8", "--json").document["new_answer_tokens"] == 0
    short = tmp_path / "short.txt"
    short.write_text("the\n", encoding="utf-8")
    refused = lope(*words[:-1], str(short), "--length", "16", "--top-k", "8")
    assert refused.code == 2
    assert "holds no text of 16 tokens" in refused.complaint
    both = lope(*words, "--from-tokens", str(text))
    assert both.code == 2
    assert "name one of them" in both.complaint
