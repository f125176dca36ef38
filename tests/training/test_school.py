"""From a target and nothing else to a drafter folder: both kinds, interrupted, warm-started, and refused."""

import contextlib
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.distilling import PROMPTS, after, distil, file_prompts

from lope.core.errors import LopeError, UsageError
from lope.models.drafter_folder import DrafterFolder
from lope.models.loaded import LoadedModel
from lope.training.distillation import Distillation
from lope.training.lessons import Lessons
from lope.training.school import Event, School
from lope.training.trainer import TrainerSettings

KINDS = ("standalone", "eagle")
SETTINGS = TrainerSettings(minutes=0.1, steps=6, evaluate_every=3, warmup=2)


@pytest.fixture
def model(tiny_model: Callable[..., LoadedModel]) -> LoadedModel:
    return tiny_model("llama3")


@pytest.fixture
def distilled(model: LoadedModel, tmp_path: Path) -> Path:
    distil(model, tmp_path / "set", file_prompts(), after(14), layers=(1, 2, 3))
    return tmp_path / "set"


def _lessons(kind: str, **changed: Any) -> Lessons:
    sizes: dict[str, Any] = {"vocab": 60, "hidden": 64, "layers": 1, "length": 128, "rows": 2, "storage": "float32"}
    return Lessons(kind=kind, **{**sizes, **changed})


def _school(model: LoadedModel, out: Path, distilled: Path, kind: str = "standalone", **changed: Any) -> School:
    return School(model, out, _lessons(kind, **changed), SETTINGS, sets=(distilled,))


def _run(school: School) -> list[Event]:
    return list(school.run())


@pytest.mark.parametrize("kind", KINDS)
def test_a_set_becomes_a_drafter(kind: str, model: LoadedModel, distilled: Path, tmp_path: Path) -> None:
    school = _school(model, tmp_path / "out", distilled, kind)
    assert [event.stage for event in _run(school)] == ["output", *["distil"] * 5]
    folder = DrafterFolder.read(tmp_path / "out")
    assert folder.about.kind == kind
    assert folder.about.target.tokenizer == model.tokenizer.fingerprint
    assert model.stop_tokens <= set(folder.tensors["kept"].tolist()), "the end of a turn can always be said"
    assert len(school.figures()["held_out"]) == (3 if kind == "eagle" else 1)


def test_a_target_alone_becomes_a_drafter(model: LoadedModel, tmp_path: Path) -> None:
    """No data set: the target writes what it is asked, for half of the time. The same call again has nothing to do."""
    school = replace(_school(model, tmp_path / "out", Path()), sets=())
    place = Distillation(model, tmp_path / "out" / "set", "own", 0, features=False)
    with contextlib.closing(place.run(math.inf)) as progress:
        while next(progress).sequences < 4:
            pass
    (tmp_path / "out" / "set" / "seconds.json").write_text("1e9")
    assert [event.stage for event in _run(school) if event.row] == ["output", *["distil"] * 5]
    before = DrafterFolder.read(tmp_path / "out").tensors["lm_head.weight"]
    assert not [event for event in _run(school) if event.row]
    assert torch.equal(DrafterFolder.read(tmp_path / "out").tensors["lm_head.weight"], before)


@pytest.mark.parametrize("kind", KINDS)
def test_a_drafter_begins_from_another(kind: str, model: LoadedModel, distilled: Path, tmp_path: Path) -> None:
    first = _school(model, tmp_path / "first", distilled, kind)
    _run(first)
    begun = DrafterFolder.read(tmp_path / "first")
    still = replace(SETTINGS, learning_rate=1e-9, steps=1)
    _run(replace(first, out=tmp_path / "second", init=tmp_path / "first", settings=still))
    for name, tensor in DrafterFolder.read(tmp_path / "second").tensors.items():
        torch.testing.assert_close(tensor, begun.tensors[name], atol=1e-5, rtol=1e-4)


def test_text_comes_first(model: LoadedModel, distilled: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(PROMPTS * 3))
    school = replace(_school(model, tmp_path / "out", distilled, text=0.5), text=text)
    assert [event.stage for event in _run(school)][:3] == ["text"] * 3


def test_what_does_not_fit_is_one_clear_line(model: LoadedModel, distilled: Path, tmp_path: Path) -> None:
    own = _school(model, tmp_path / "own", distilled)
    _run(own)
    bare = tmp_path / "bare"
    distil(model, bare, file_prompts(), after(6), layers=())
    cases: list[tuple[str, School]] = [
        (
            "the vocabulary to keep must be",
            replace(own, out=tmp_path / "a", lessons=_lessons("standalone", vocab=10**6)),
        ),
        ("no hidden states", replace(own, out=tmp_path / "b", lessons=_lessons("eagle"), sets=(bare,))),
        ("is a standalone drafter", replace(own, out=tmp_path / "c", lessons=_lessons("eagle"), init=tmp_path / "own")),
        ("is not a distilled set", replace(own, out=tmp_path / "d", sets=(tmp_path / "nowhere",))),
        ("is not a drafter folder", replace(own, out=tmp_path / "e", init=tmp_path)),
    ]
    for words, school in cases:
        with pytest.raises(LopeError, match=words):
            _run(school)


def test_a_base_model_is_told_to_bring_prompts(tiny_model: Callable[..., LoadedModel], tmp_path: Path) -> None:
    base = replace(tiny_model("llama3"), template=None)
    with pytest.raises(UsageError, match="--prompts"):
        _run(replace(_school(base, tmp_path / "out", Path()), sets=()))


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ("standalone or eagle", {"kind": "medusa"}),
        ("float32, bfloat16, int8", {"kind": "standalone", "storage": "int4"}),
        ("multiple of 64", {"kind": "standalone", "hidden": 100}),
        ("no loss part 'mse'", {"kind": "standalone", "loss": "mse"}),
    ],
)
def test_settings_that_cannot_be(words: str, settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=words):
        Lessons(**settings)
