"""From a target and nothing else to a drafter folder: both kinds, interrupted, warm-started, and refused."""

import contextlib
import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.distilling import PROMPTS, after, distil, file_prompts

from lope.core.claimed_folder import ClaimedFolder
from lope.core.errors import LopeError, UsageError
from lope.models.drafter_folder import DrafterFolder
from lope.models.loaded import LoadedModel
from lope.training.distillation import Distillation
from lope.training.distilled_set import DistilledSet
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
    (tmp_path / "out" / "log.jsonl").touch()  # as a training that was interrupted while it distilled
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
    same = replace(first, lessons=_lessons(kind, vocab=None), init=tmp_path / "first", settings=still)
    _run(replace(same, out=tmp_path / "second"))
    for name, tensor in DrafterFolder.read(tmp_path / "second").tensors.items():
        torch.testing.assert_close(tensor, begun.tensors[name], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_drafter_goes_on_with_a_head_of_other_tokens(
    kind: str, model: LoadedModel, distilled: Path, tmp_path: Path
) -> None:
    """Rows of tokens that stay are as they were learned; an interrupted training keeps the head that it chose."""
    first = _school(model, tmp_path / "first", distilled, kind)
    _run(first)
    begun = DrafterFolder.read(tmp_path / "first")
    other = replace(
        first,
        out=tmp_path / "second",
        lessons=_lessons(kind, vocab=len(begun.tensors["kept"]) - 10),
        init=tmp_path / "first",
        settings=replace(SETTINGS, learning_rate=1e-9, steps=1),
    )
    _run(other)
    second = DrafterFolder.read(tmp_path / "second")
    stayed = torch.isin(begun.tensors["kept"], second.tensors["kept"])
    assert int(stayed.sum()) == len(second.tensors["kept"]) == len(stayed) - 10, "the most said ones of the same set"
    rows = begun.tensors["lm_head.weight"][stayed]
    torch.testing.assert_close(second.tensors["lm_head.weight"], rows, atol=1e-5, rtol=1e-4)
    _run(replace(other, settings=replace(other.settings, steps=2)))
    assert torch.equal(DrafterFolder.read(tmp_path / "second").tensors["kept"], second.tensors["kept"])


def test_text_comes_first(model: LoadedModel, distilled: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(PROMPTS * 3))
    school = replace(_school(model, tmp_path / "out", distilled, text=0.5), text=text)
    assert [event.stage for event in _run(school)][:3] == ["text"] * 3


def test_what_does_not_fit_is_one_clear_line(model: LoadedModel, distilled: Path, tmp_path: Path) -> None:
    own = _school(model, tmp_path / "own", distilled)
    _run(own)
    _run(_school(model, tmp_path / "two", distilled, layers=2))
    bare = tmp_path / "bare"
    distil(model, bare, file_prompts(), after(6), layers=())
    cases: list[tuple[str, School]] = [
        (
            "the vocabulary to keep must be",
            replace(own, out=tmp_path / "a", lessons=_lessons("standalone", vocab=10**6)),
        ),
        ("no hidden states", replace(own, out=tmp_path / "b", lessons=_lessons("eagle"), sets=(bare,))),
        (
            "its kind is standalone, not eagle",
            replace(own, out=tmp_path / "c", lessons=_lessons("eagle"), init=tmp_path / "own"),
        ),
        (
            "the drafter to begin from has another embed_projection.weight",
            replace(own, out=tmp_path / "f", lessons=_lessons("standalone", hidden=128), init=tmp_path / "own"),
        ),
        (
            "the drafter to begin from has another layers.1",
            replace(own, out=tmp_path / "g", lessons=_lessons("standalone", layers=1), init=tmp_path / "two"),
        ),
        ("is not a distilled set", replace(own, out=tmp_path / "d", sets=(tmp_path / "nowhere",))),
        ("is not a drafter folder", replace(own, out=tmp_path / "e", init=tmp_path)),
    ]
    for words, school in cases:
        with pytest.raises(LopeError, match=words):
            _run(school)


def test_a_training_goes_on_with_the_tokens_it_began_with_though_its_set_has_grown(
    model: LoadedModel, distilled: Path, tmp_path: Path
) -> None:
    """Weights of the head are those of its tokens: a grown set would choose others of the same number."""
    school = _school(model, tmp_path / "out", distilled)
    _run(school)
    kept = DrafterFolder.read(tmp_path / "out").tensors["kept"]
    distil(model, distilled, file_prompts(), after(26), layers=(1, 2, 3))
    fresh = replace(school, out=tmp_path / "fresh")
    _run(fresh)
    assert not torch.equal(DrafterFolder.read(tmp_path / "fresh").tensors["kept"], kept), "the set must have grown"
    _run(replace(school, settings=replace(SETTINGS, steps=9)))
    # the drafter is written only where it got better: the checkpoint always says
    assert json.loads((tmp_path / "out" / "checkpoint.json").read_text())["about"]["kept"] == kept.tolist()


@pytest.mark.parametrize("held", ["notes.txt", "README.md", "drafter.json", "manifest.json", "results.json"])
def test_a_folder_that_holds_something_else_stays_as_it_is(
    held: str, model: LoadedModel, distilled: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / held).write_text("mine")
    with pytest.raises(UsageError, match=f"out: holds something else, such as {held}"):
        _run(_school(model, tmp_path / "out", distilled))
    assert [path.read_text() for path in (tmp_path / "out").iterdir()] == ["mine"]


@pytest.mark.parametrize("log", ['{"a": 1}', "notes", '{"a": 1}\n{"step": 1}\n', '{"step": 1}\nnotes\n{"step": 2}\n'])
def test_a_log_of_something_else_stays_as_it_is(log: str, model: LoadedModel, distilled: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "log.jsonl").write_text(log)
    (out / "README.md").write_text("mine")
    for sets in ((distilled,), ()):
        with pytest.raises(UsageError, match=r"log\.jsonl: is not the log of a training"):
            _run(replace(_school(model, out, distilled), sets=sets))
    assert (out / "log.jsonl").read_text() == log
    assert sorted(path.name for path in out.iterdir()) == [".lock", "README.md", "log.jsonl"]
    assert (out / "README.md").read_text() == "mine"


def test_a_folder_of_the_user_in_which_a_set_lies_is_no_training(
    model: LoadedModel, distilled: Path, tmp_path: Path
) -> None:
    shutil.copytree(distilled, tmp_path / "home" / "set")
    with pytest.raises(UsageError, match="home: holds something else, such as set"):
        _run(_school(model, tmp_path / "home", tmp_path / "home" / "set"))


def test_a_training_that_is_refused_leaves_no_folder(model: LoadedModel, distilled: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a distilled set"):
        _run(replace(_school(model, tmp_path / "out", distilled), sets=(tmp_path / "nowhere",)))
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine").mkdir()
    ClaimedFolder(tmp_path / "mine").release()
    assert (tmp_path / "mine").exists(), "it was there before"


@pytest.mark.parametrize(
    ("words", "lessons"),
    [
        ("loss", {"loss": "tvd"}),
        ("seed", {"seed": 1}),
        ("kind", {"kind": "eagle"}),
        (r"length \(128, now 64\), rows \(2, now 3\)", {"length": 64, "rows": 3}),
    ],
)
def test_other_lessons_than_a_training_began_with_are_refused(
    words: str, lessons: dict[str, Any], model: LoadedModel, distilled: Path, tmp_path: Path
) -> None:
    school = _school(model, tmp_path / "out", distilled)
    _run(school)
    with pytest.raises(UsageError, match=f"was begun with another {words}"):
        _run(replace(school, lessons=_lessons(**{"kind": "standalone", **lessons})))
    _run(replace(school, settings=replace(SETTINGS, steps=7, learning_rate=1e-4)))  # how long and how fast is free


def test_a_second_process_in_the_same_folder_is_refused(model: LoadedModel, distilled: Path, tmp_path: Path) -> None:
    claim = ClaimedFolder(tmp_path / "out")
    with pytest.raises(UsageError, match="another run is writing"):
        _run(_school(model, tmp_path / "out", distilled))
    claim.release()
    _run(_school(model, tmp_path / "out", distilled))


def test_sets_that_keep_different_numbers_of_probabilities_are_learned_from_together(
    model: LoadedModel, distilled: Path, tmp_path: Path
) -> None:
    distil(model, tmp_path / "wide", file_prompts(seed=1), after(14), layers=(1, 2, 3), top_k=20, seed=1)
    school = replace(_school(model, tmp_path / "out", distilled), sets=(distilled, tmp_path / "wide"))
    assert len([event for event in _run(school) if event.row]) == 6


def test_sets_of_another_target_and_layers_that_differ_are_one_clear_line(
    model: LoadedModel, distilled: Path, tmp_path: Path
) -> None:
    eagle = _school(model, tmp_path / "out", distilled, "eagle")
    distil(model, tmp_path / "others", file_prompts(), after(6), layers=(0, 1, 2))
    distil(model, tmp_path / "two", file_prompts(), after(6), layers=(1, 3))
    distil(model, tmp_path / "none", file_prompts(), after(6), layers=())
    distil(model, tmp_path / "narrow", file_prompts(), after(6), layers=(1, 2, 3), hidden_size=32)
    distil(model, tmp_path / "words", file_prompts(), after(6), layers=(1, 2, 3), vocab_size=400)
    cases = {
        "others: holds layers 0-1-2": (distilled, tmp_path / "others"),
        "two: holds layers 1-3": (tmp_path / "two",),
        "none: holds no hidden states": (distilled, tmp_path / "none"),
        "narrow: holds hidden states of 32 numbers": (tmp_path / "narrow",),
        "words: was distilled from 400 tokens": (tmp_path / "words",),
    }
    for words, sets in cases.items():
        with pytest.raises(UsageError, match=words):
            _run(replace(eagle, sets=sets))


def test_what_would_be_passed_over_in_silence_is_refused(model: LoadedModel, distilled: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the cat")
    with pytest.raises(UsageError, match="--text is for a stand-alone one"):
        _run(replace(_school(model, tmp_path / "out", distilled, "eagle"), text=text))
    with pytest.raises(UsageError, match="either --set or --prompts"):
        _run(replace(_school(model, tmp_path / "out", distilled), prompts=str(text)))


def test_what_was_said_is_learned_from_when_the_prompts_are_used_up(model: LoadedModel, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join(PROMPTS))
    place = Distillation(model, tmp_path / "out" / "set", str(prompts), 0, features=False)
    with contextlib.closing(place.run(math.inf)) as progress:
        while next(progress).sequences < 4:
            pass
    prompts.write_text("\n".join("the cat " * model.backend.context + word for word in "abcdefgh"))
    (tmp_path / "out" / "log.jsonl").touch()  # as a training that was interrupted while it distilled
    settings = replace(SETTINGS, minutes=1e6)
    school = replace(_school(model, tmp_path / "out", Path()), sets=(), prompts=str(prompts), settings=settings)
    events = _run(school)
    assert "what was finished is kept" in events[0].words
    assert len([event for event in events if event.row]) == 6


def test_the_clock_of_a_distillation_is_whole_and_complete(model: LoadedModel, tmp_path: Path) -> None:
    def begin() -> Distillation:
        return Distillation(model, tmp_path / "set", "own", 0, features=False)

    assert list(begin().run(0.2))
    sizes = DistilledSet.open(tmp_path / "set").sizes()
    assert not list(begin().run(0.2)), "its time is spent, however short it was"
    assert DistilledSet.open(tmp_path / "set").sizes() == sizes
    for content in ("", "[]", "NaN", "true"):
        (tmp_path / "set" / "seconds.json").write_text(content)
        with pytest.raises(UsageError, match=r"seconds\.json: does not say how many"):
            list(begin().run(0.2))


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
        ("seed must lie between", {"seed": 10**30}),
    ],
)
def test_settings_that_cannot_be(words: str, settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=words):
        Lessons(**settings)
