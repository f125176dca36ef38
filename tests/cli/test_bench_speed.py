"""`lope bench speed` on a tiny model: what it prints and writes, how it goes on, and what it refuses."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.homes import fresh_home

from lope.bench.results_file import read_document
from lope.cli.main import main
from lope.core.claimed_folder import ClaimedFolder

_ROWS = [
    {"id": "a", "category": "writing", "turns": ["the cat sat on the mat", "and the dog?"]},
    {"id": "b", "category": "qa", "turns": ["the dog ran after the cat and the dog"]},
    {"id": "c", "category": "qa", "turns": ["the mat"]},
]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "suite.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in _ROWS), encoding="utf-8")
    return path


@pytest.fixture
def words(tiny_folder: Callable[..., Path], suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("LOPE_HOME", fresh_home(tmp_path / "home"))
    common = ["--model", str(tiny_folder()), "--dtype", "float32", "--threads", "1", "--max-new-tokens", "8"]
    return ["bench", "speed", *common, "--suite", str(suite), "--out", str(tmp_path / "out")]


def _run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, Any, str]:
    """Exit code, the JSON document, stderr."""
    code = 0
    try:
        main([*words, "--json"])
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed = capsys.readouterr()
    return code, json.loads(printed.out), printed.err


def test_the_document_the_results_and_the_report(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, document, _ = _run([*words, "--config", "drafter=none", "--config", "drafter=ngram"], capsys)
    assert code == 0
    assert list(document) == ["reference", "systems", "results"]
    assert document["reference"] == "drafter=none"
    assert list(document["systems"]) == ["drafter=none", "plain", "drafter=ngram"]
    assert document["results"] == str(tmp_path / "out" / "results.json")
    for figures in document["systems"].values():
        assert list(figures["categories"]) == ["mt_bench", "qa"]
        assert figures["agreement"] == 1.0
    assert document["systems"]["plain"]["tokens_per_pass"] == 1.0
    assert document["systems"]["drafter=none"]["speedup"] == 1.0
    written = read_document(tmp_path / "out" / "results.json")
    assert len(written["rows"]) == 9
    assert [len(row["turns"]) for row in written["rows"] if row["id"] == "a"] == [2, 2, 2]
    assert written["settings"]["threads"] == 1
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_same_command_goes_on_and_other_settings_are_refused(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, first, _ = _run(words, capsys)
    path = tmp_path / "out" / "results.json"
    rows = read_document(path)["rows"]
    code, again, _ = _run(words, capsys)
    assert code == 0
    assert again == first
    assert read_document(path)["rows"] == rows
    assert len(read_document(path)["sessions"]) == 2
    code, document, said = _run([*words, "--max-new-tokens", "9"], capsys)
    assert code == 2
    assert "max_new_tokens was 8, is 9" in document["error"]
    assert said.count("\n") == 1
    code, _, _ = _run([*words, "--max-new-tokens", "2", "--no-resume"], capsys)
    assert code == 0
    assert len(read_document(path)["sessions"]) == 1


def test_transformers_beside_ours_says_the_same(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, document, said = _run([*words, "--against", "transformers"], capsys)
    assert code == 0
    for name in ("transformers", "transformers prompt lookup"):
        assert document["systems"][name]["agreement"] == 1.0
    assert document["systems"]["transformers"]["tokens_per_pass"] == 1.0
    assert "transformers assistant is skipped" in said
    systems = read_document(tmp_path / "out" / "results.json")["systems"]
    assert set(systems[-1]["versions"]) == {"transformers", "torch"}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (["--config", "drafter=ngrm"], "did you mean 'ngram'"),
        (["--against", "ollama"], "no peer 'ollama' (there are: transformers, llama.cpp, vllm, openvino)"),
        (["--per-category", "0"], "per_category must be at least 1"),
        (["--max-new-tokens", "0"], "max_new_tokens must be at least 1"),
        (["--max-new-tokens", "500"], "fits the model's context of 256 tokens"),
        (["--suite", "/no/such/suite"], "/no/such/suite: cannot be read: No such file or directory"),
        (["--out", "/dev/null/here"], "/dev/null/here: cannot be written: Not a directory"),
        (["--against", "openvino", "--device", "meta"], "peers are run on the CPU"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    words: list[str], given: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, document, said = _run([*words, *given], capsys)
    assert code in (1, 2)
    assert error in document["error"]
    assert said.count("\n") == 1


def test_a_row_without_turns_and_an_older_file_are_one_line(
    words: list[str], suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    old = tmp_path / "out" / "results.json"
    old.write_text('{"schema": 0, "kind": "lope bench speed"}', encoding="utf-8")
    code, document, _ = _run(words, capsys)
    assert code == 2
    assert "has schema 0" in document["error"]
    suite.write_text('{"id": 1, "category": "qa"}\n', encoding="utf-8")
    code, document, _ = _run(words, capsys)
    assert code == 2
    assert f"{suite}, line 1: has no turns" in document["error"]


def test_two_runs_in_one_folder_are_refused(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = ClaimedFolder(tmp_path / "out")
    code, document, _ = _run(words, capsys)
    assert code == 2
    assert "another run is writing its results there" in document["error"]
    held.release()
    code, _, _ = _run(words, capsys)
    assert code == 0
    ClaimedFolder(tmp_path / "out").release()


def test_ctrl_c_keeps_the_rows_and_the_same_command_ends_the_run(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out" / "results.json"
    longer = [*words, "--max-new-tokens", "60"]
    run = subprocess.Popen(
        [sys.executable, "-m", "lope", *longer], stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "80"}
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (path.exists() and read_document(path)["rows"]):
        time.sleep(0.005)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    if run.returncode != 0:  # it may have been faster than the signal
        assert run.returncode == 130
        assert "rows are kept; the same command goes on from there" in said
        assert "Traceback" not in said
    kept = read_document(path)["rows"]
    code, _, _ = _run(longer, capsys)
    assert code == 0
    rows = read_document(path)["rows"]
    assert rows[: len(kept)] == kept
    assert max(Counter((row["id"], row["system"]) for row in rows).values()) == 1
    assert len(rows) == 9


def test_without_json_a_table_and_where_the_files_are(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--config", "name=a [bold] name,drafter=none"])
    assert ended.value.code == 0
    printed = capsys.readouterr()
    assert "speed-up over a [bold] name, prompt excluded" in printed.out
    for line in ("plain", "100 %", f"results: {tmp_path}", f"report:  {tmp_path}"):
        assert line in printed.out
    assert printed.err == ""
