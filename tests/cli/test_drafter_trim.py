"""`lope drafter trim` on a tiny target: what it prints and writes, and what it refuses."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.calling import Caller
from tests.training.folders import distilled, drafter

from lope.models.drafter_folder import DrafterFolder
from lope.models.loaded import LoadedModel


@pytest.fixture
def words(tiny_folder: Callable[..., Path], tiny_model: Callable[..., LoadedModel], tmp_path: Path) -> list[str]:
    drafter(tmp_path / "whole", tiny_model(), "standalone", storage="int8")
    (tmp_path / "text.txt").write_text("the cat sat on the mat\nthe dog ran\n", encoding="utf-8")
    common = ["--target", str(tiny_folder()), "--dtype", "float32", "--out", str(tmp_path / "cut"), "--json"]
    return ["drafter", "trim", str(tmp_path / "whole"), "--vocab", "40", *common]


@pytest.mark.parametrize("counts", ["target", "draft", "text"])
def test_the_document_and_the_folder(
    counts: str, words: list[str], lope: Caller, tiny_model: Callable[..., LoadedModel], tmp_path: Path
) -> None:
    own = DrafterFolder.read(tmp_path / "whole").tensors["kept"].tolist()
    place = distilled(tmp_path / "set", tiny_model(), [own[:6]] * 12)
    source = ["--text", str(tmp_path / "text.txt")] if counts == "text" else ["--set", str(place)]
    called = lope(*words, "--counts", counts, *source, "--prompts", "3", "--max-new-tokens", "6")
    assert called.code == 0, called.err
    document = called.document
    assert {"out", "kind", "counts", "counted_in", "from", "vocab", "vocab_before", "coverage"} <= document.keys()
    assert (document["counts"], document["vocab"], document["vocab_before"]) == (counts, 40, 120)
    assert document["counted_in"] == ["text.txt" if counts == "text" else "set"]
    assert 0.0 < document["coverage"] <= document["coverage_before"] <= 1.0
    kept = DrafterFolder.read(tmp_path / "cut").tensors["kept"].tolist()
    assert set(kept) <= set(own)
    if counts == "target":
        assert set(own[:6]) <= set(kept)
        assert document["held_out_coverage"] == document["coverage"] == 1.0


def test_without_json_a_few_lines(
    words: list[str], lope: Caller, tiny_model: Callable[..., LoadedModel], tmp_path: Path
) -> None:
    called = lope(*words[:-1], "--counts", "text", "--text", str(tmp_path / "text.txt"))
    assert called.code == 0
    assert f"drafter: {tmp_path / 'cut'}, 40 of 120 tokens" in called.out
    assert "of what was counted" in called.out
    assert called.err == ""


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (["--vocab", "121", "--counts", "text", "--text", "{text}"], "keeps 120 tokens: it cannot be trimmed to 121"),
        ([], "what the target says is counted in distilled sets: name one with --set"),
        (["--counts", "text"], "--counts text needs --text FILE"),
        (["--counts", "draft"], "--counts draft needs prompts to draft for"),
        (["--counts", "mine"], "--counts is target, draft or text, not 'mine'"),
        (["--set", "{empty}"], "holds no sequence yet"),
        (["--set", "{other}"], "was distilled with another tokenizer"),
        (["--set", "{whole}"], "is not a distilled set"),
        (["--counts", "text", "--text", "{text}", "--out", "{whole}"], "is not an empty folder"),
        (["--counts", "text", "--text", "/no/such/text"], "/no/such/text: cannot be read"),
        (["--counts", "text", "--text", "{text}", "--out", "/dev/null/cut"], "cannot be written: Not a directory"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    given: list[str], error: str, words: list[str], lope: Caller, tiny_model: Callable[..., LoadedModel], tmp_path: Path
) -> None:
    places = {
        "text": tmp_path / "text.txt",
        "whole": tmp_path / "whole",
        "empty": distilled(tmp_path / "empty", tiny_model(), []),
        "other": distilled(tmp_path / "other", tiny_model(), [(1, 2)], tokenizer="another"),
    }
    called = lope(*words, *(text.format(**places) for text in given))
    assert called.code in (1, 2)
    assert error in called.complaint
    assert error in called.document["error"]
    assert not (tmp_path / "cut").exists()
