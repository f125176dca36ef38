"""`lope bench quality` on a tiny model: one table, one document, one line for what is wrong."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.homes import fresh_home

from lope.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tiny_folder, capsys, tmp_path, monkeypatch) -> Run:
    monkeypatch.setenv("LOPE_HOME", fresh_home(tmp_path / "home"))
    (tmp_path / "text.txt").write_text("the cat sat on the mat and the dog ran after the cat")
    (tmp_path / "tasks.jsonl").write_text('{"prompt": "the cat", "answer": "sat", "match": "contains"}\n')

    def call(*arguments: str) -> tuple[int, str, str]:
        code = 0
        words = [each.replace("HERE", str(tmp_path)).replace("TINY", str(tiny_folder())) for each in arguments]
        try:
            main(["bench", "quality", "--model", str(tiny_folder()), "--dtype", "float32", *words])
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


ASK = ("--text", "HERE/text.txt", "--window", "32", "--stride", "8", "--tasks", "HERE/tasks.jsonl", "--max-new-tokens",
       "6", "--retrieval", "passkey", "--lengths", "220", "--depths", "0,1", "--repeats", "1", "--raw")  # fmt: skip


def document(out: str) -> Any:
    assert len(out.splitlines()) == 1
    return json.loads(out)


def test_a_table_and_a_document(run, tmp_path):
    configs = ("--config", "drafter=none", "--config", "drafter=ngram,name=copy", "--config", "model=hf:TINY,exact=no")
    code, out, err = run(*ASK, *configs, "--json", "--out", "HERE/quality.json")
    assert code == 0, err
    printed = document(out)
    written = json.loads((tmp_path / "quality.json").read_text())
    assert printed == written
    assert printed["reference"] == "drafter=none"
    plain, copy, adapted = printed["configurations"].values()
    assert list(printed["configurations"])[1] == "copy"
    assert plain["perplexity"]["ratio"] == 1.0
    assert copy["agreement"] == 1.0
    assert adapted["perplexity"]["ratio"] == pytest.approx(1.0, abs=1e-3)
    assert plain["retrieval"]["cells"][1]["depth"] == 1.0
    assert plain["tasks"]["count"] == 1
    assert printed["settings"]["stride"] == 8
    assert printed["session"]["versions"]["lope"]
    code, out, _ = run(*ASK, *configs)
    assert code == 0
    for word in ("copy", "perplexity", "passkey", "tasks right", "same answers", "tokens", "depth 1"):
        assert word in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing to judge by: give --text FILE"),
        (("--text", "HERE/absent.txt"), "absent.txt: cannot be read: No such file"),
        (("--tasks", "HERE/text.txt"), "text.txt, line 1: is not JSON"),
        (("--retrieval", "key"), "retrieval is of passkey or needle, not 'key'"),
        (("--retrieval", "passkey", "--lengths", "1k"), "--lengths takes numbers separated by commas, not '1k'"),
        (("--retrieval", "passkey", "--lengths", "5000", "--raw"), "do not fit the context of 256"),
        (("--text", "HERE/text.txt", "--window", "999"), "longer than the model's context of 256"),
        ((*ASK, "--config", "drafter=none", "--config", "drafter=none"), "two configurations are called"),
        ((*ASK, "--config", "drafter=ngrm"), "did you mean 'ngram'"),
        ((*ASK, "--out", "HERE/no/such.json"), "in a folder that exists"),
        ((*ASK, "--threads", "0"), "threads must lie between 1 and"),
    ],
)
def test_bad_usage_is_one_line(run, arguments, words):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.strip().splitlines()) == 1
    code, out, err = run(*arguments, "--json")
    assert code == 2
    assert words in document(out)["error"]
