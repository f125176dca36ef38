"""`lope drafter eval` on a tiny target: what it prints, what it writes into the folder, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.calling import Caller
from tests.training.folders import drafter

from lope.bench.results_file import read_document
from lope.models.drafter_folder import DrafterFolder
from lope.models.loaded import LoadedModel

_ROWS = [
    {"id": "a", "category": "writing", "turns": ["the cat sat on the mat", "and the dog?"]},
    {"id": "b", "category": "qa", "turns": ["the dog ran after the cat and the dog"]},
]


@pytest.fixture
def words(tiny_folder: Callable[..., Path], tiny_model: Callable[..., LoadedModel], tmp_path: Path) -> list[str]:
    drafter(tmp_path / "mine", tiny_model(), "standalone")
    (tmp_path / "suite.jsonl").write_text("".join(json.dumps(row) + "\n" for row in _ROWS), encoding="utf-8")
    common = ["--target", str(tiny_folder()), "--dtype", "float32", "--threads", "1", "--max-new-tokens", "8"]
    common += ["--suite", str(tmp_path / "suite.jsonl"), "--out", str(tmp_path / "out"), "--json"]
    return ["drafter", "eval", str(tmp_path / "mine"), *common]


def test_figures_of_each_point_are_printed_and_kept(words: list[str], lope: Caller, tmp_path: Path) -> None:
    before = DrafterFolder.read(tmp_path / "mine")
    stored = (tmp_path / "mine" / "drafter.safetensors").read_bytes()
    called = lope(*words, "--shape", "chain", "--depth", "1", "--depth", "2", "--write")
    assert called.code == 0, called.err
    document = called.document
    assert [point["name"] for point in document["points"]] == ["chain depth=1", "chain depth=2"]
    assert list(document["beside"]) == ["plain again", "ngram"]
    assert document["beside"]["plain again"]["tokens_per_pass"] == 1.0
    size = sum(value.numel() for name, value in before.tensors.items() if name != "kept")
    for point in document["points"]:
        assert point["agreement"] == 1.0
        assert point["tokens_per_pass_low"] <= point["tokens_per_pass"] <= point["tokens_per_pass_high"]
        assert point["mbsu"] == pytest.approx(point["tokens_per_pass"] / (document["draft_cost"] * point["depth"] + 1))
        assert len(point["acceptance"]) <= point["depth"]
        if point["modelled_speedup"] is not None:
            costs = point["verify_cost"] + point["depth"] * point["step_cost"]
            assert point["modelled_speedup"] == pytest.approx(point["tokens_per_pass"] / costs)
    assert 0 < document["draft_cost"] < size
    # the folder: figures, the point, the card; not a bit of the weights
    after = DrafterFolder.read(tmp_path / "mine")
    assert (tmp_path / "mine" / "drafter.safetensors").read_bytes() == stored
    assert after.about.figures["eval"]["points"] == document["points"]
    assert after.about.operating_point == document["operating_point"]
    assert "chain depth=2" in (tmp_path / "mine" / "README.md").read_text(encoding="utf-8")
    # the rows follow from the results file, and the same command answers nothing again
    rows = read_document(Path(document["results"]))["rows"]
    assert len(rows) == 2 * 5
    again = lope(*words, "--shape", "chain", "--depth", "1", "--depth", "2").document
    assert again["points"][0]["tokens_per_pass"] == document["points"][0]["tokens_per_pass"]
    assert read_document(Path(document["results"]))["rows"] == rows


def test_drawn_answers_are_kept_beside_the_greedy_ones(words: list[str], lope: Caller, tmp_path: Path) -> None:
    called = lope(*words[:-1], "--shape", "rsd_s:width=2,depth=2", "--with", "none", "--temperature", "0.7", "--write")
    assert called.code == 0, called.err
    assert "rsd_s" in called.out
    assert "answers were drawn" in called.out
    assert f"written: {tmp_path / 'mine'}" in called.out
    about = DrafterFolder.read(tmp_path / "mine").about
    assert about.figures["eval_sampled"]["temperature"] == 0.7
    assert "eval" not in about.figures
    assert about.operating_point is None
    settings = read_document(tmp_path / "out" / "results.json")["settings"]
    assert settings["temperature"] == 0.7
    assert len(settings["systems"]) == 3  # plain twice, the drafter, and nothing beside


def test_an_interrupted_run_prints_what_there_is_and_writes_nothing_into_the_folder(
    words: list[str], lope: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_off(run: Any, *, silent: bool) -> bool:
        assert silent
        next(run.rows())
        return True

    before = (tmp_path / "mine" / "drafter.json").read_bytes()
    monkeypatch.setattr("lope.cli.drafter_eval.follow", broken_off)
    called = lope(*words, "--shape", "chain:depth=1", "--write")
    assert called.code == 130
    assert called.err.splitlines()[-1].startswith("lope: interrupted: finished rows are kept")
    assert "Traceback" not in called.err
    assert called.document["points"][0]["name"] == "chain depth=1"
    assert (tmp_path / "mine" / "drafter.json").read_bytes() == before
    assert len(read_document(tmp_path / "out" / "results.json")["rows"]) == 1


def test_a_folder_may_have_a_comma_in_its_name(
    words: list[str], lope: Caller, tiny_model: Callable[..., LoadedModel], tmp_path: Path
) -> None:
    words[2] = str(drafter(tmp_path / r"a, b\\,c", tiny_model(), "eagle").path)
    called = lope(*words)
    assert called.code == 0, called.err
    assert called.document["points"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (["--shape", "rsd_s:width=8", "--depth", "5"], "has more than 32 nodes at 5 levels"),
        (["--shape", "chan"], "did you mean 'chain'"),
        (["--depth", "0"], "depth must lie between 1 and 32, not 0"),
        (["--temperature", "-1"], "temperature must lie between 0 and 100"),
        (["--per-category", "0"], "per_category must be at least 1"),
        (["--with", "ngrm"], "did you mean 'ngram'"),
        (["--suite", "/no/such/suite"], "/no/such/suite: cannot be read"),
    ],
)
def test_what_cannot_be_done_is_one_line(given: list[str], error: str, words: list[str], lope: Caller) -> None:
    called = lope(*words, *given)
    assert called.code == 2
    assert error in called.complaint
    assert error in called.document["error"]


def test_a_folder_that_is_no_drafter_or_fits_another_target_is_one_line(
    words: list[str], lope: Caller, tiny_model: Callable[..., LoadedModel], tmp_path: Path
) -> None:
    words[2] = str(tmp_path)
    assert "is not a drafter folder" in lope(*words).complaint
    words[2] = str(drafter(tmp_path / "other", tiny_model("qwen3"), "eagle").path)
    document = json.loads((tmp_path / "other" / "drafter.json").read_text())
    document["target"]["tokenizer"] = "another"
    (tmp_path / "other" / "drafter.json").write_text(json.dumps(document))
    assert "the drafter was made for" in lope(*words).complaint
