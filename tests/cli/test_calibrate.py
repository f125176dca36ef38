"""`lope calibrate` on a tiny model: a table, a document, a file; what is wrong is one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.homes import fresh_home

from lope.cli.main import main
from lope.engine.calibration_plan import CalibrationPlan

PLAN = CalibrationPlan((1, 2, 4, 8), (16, 64), rounds=2, plain=3, drafts=12, pass_seconds=60.0, draft_seconds=60.0)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("LOPE_HOME", fresh_home(tmp_path / "home"))
    monkeypatch.setattr("lope.engine.calibration_plan.FULL", PLAN)
    monkeypatch.setattr("lope.engine.calibration_plan.QUICK", PLAN)
    return tmp_path / "home" / "calibrations"


@pytest.fixture
def run(tiny_folder, capsys) -> Callable[..., tuple[int, str, str]]:
    def call(*arguments: str, name: str | None = None) -> tuple[int, str, str]:
        code = 0
        try:
            main(["calibrate", "--model", name or str(tiny_folder()), "--dtype", "float32", *arguments])
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def document(out: str) -> Any:
    assert len(out.splitlines()) == 1
    return json.loads(out)


def test_a_table_and_a_plot(run, home, tmp_path):
    code, out, err = run("--plot", str(tmp_path / "curve.png"))
    assert code == 0, err
    [file] = home.glob("*.json")
    assert str(file) in out
    for word in ("context 16", "context 64", "rows", "█", "the rest of a round", "one draft of ngram", "what pays"):
        assert word in out
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"


def test_what_is_shipped_for_the_model_is_measured_too(run, home, monkeypatch):
    shipped = [("truncated:layers=1", {"shape": "rsd_c:branching=2-1", "nodes": 4, "depth": 2, "tokens_per_pass": 1.5})]
    monkeypatch.setattr("lope.engine.default_drafter.points", lambda model: shipped)
    code, out, err = run()
    assert code == 0, err
    assert "one draft of truncated:layers=1 | shape rsd_c:branching=2-1" in out
    [file] = home.glob("*.json")
    beside = "truncated:layers=1 | shape rsd_c:branching=2-1 | stop never"
    assert set(json.loads(file.read_text())["drafters"]) == {"ngram | shape chain | stop never", beside}
    assert f"also measured: drafts of {beside} (" in run("--show", "--drafter", "ngram")[1]
    file.unlink()
    assert run("--drafter", "ngram")[0] == 0
    assert set(json.loads(file.read_text())["drafters"]) == {"ngram | shape chain | stop never"}


def test_json_is_what_was_saved(run, home):
    code, out, err = run("--json", "--quick")
    assert code == 0
    assert err == ""
    printed = document(out)
    assert [each["acceptance"] for each in printed.pop("pays")] == [0.1, 0.3, 0.5, 0.7, 0.9]
    file = Path(printed.pop("file"))
    assert json.loads(file.read_text()) == printed
    assert printed["contexts"] == [16, 64]
    assert printed["passes"][0]["sizes"] == [1, 2, 4, 8]


def test_what_was_saved_is_shown_again(run):
    code, _, err = run("--show")
    assert code == 2
    assert "there is no calibration of this model on this machine" in err
    assert len(err.strip().splitlines()) == 1
    saved = document(run("--json")[1])
    assert document(run("--show", "--json")[1]) == saved
    code, out, _ = run("--show")
    assert code == 0
    assert saved["file"] in out
    code, _, err = run("--show", "--no-exact")
    assert code == 2
    assert "it is of exact True (here False)" in err
    code, _, err = run("--show", "--drafter", "none")
    assert code == 2
    assert "does not know the drafter none" in err


def test_an_older_schema_is_not_used(run):
    file = Path(document(run("--json")[1])["file"])
    file.write_text(json.dumps({**json.loads(file.read_text()), "schema": 0}))
    code, _, err = run("--show")
    assert code == 2
    assert "it has schema 0, this version of lope reads 2" in err
    assert run()[0] == 0, "measuring anew replaces it"
    assert run("--show")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--plot", "curve.pdf"), "--plot takes the path of a .png file"),
        (("--plot", "/nowhere/curve.png"), "in a folder that exists"),
        (("--drafter", "ngrm"), "did you mean 'ngram'"),
        (("--threads", "0"), "threads must lie between 1 and"),
    ],
)
def test_bad_usage_is_one_line(run, arguments, words):
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert words in " ".join(err.split())


def test_a_folder_that_cannot_be_written(run, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOPE_HOME", str(tmp_path / "file"))
    code, out, _ = run("--json")
    assert code == 1
    assert "cannot be written" in document(out)["error"]
