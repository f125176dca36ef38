"""Calibrations: measured by a clock that the test moves, saved and found again, refused where they do not hold."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.homes import fresh_home

from lope.core.draft import Draft
from lope.core.errors import DraftError, RunError, UsageError
from lope.core.protocols import Job
from lope.core.scores import Needs, Scores
from lope.engine.calibration import EngineCalibration
from lope.engine.calibration_folder import CalibrationFolder
from lope.engine.calibration_passes import PassTimer
from lope.engine.calibration_place import CalibrationPlace
from lope.engine.calibration_plan import QUICK, CalibrationPlan
from lope.engine.calibration_record import CalibrationRecord, DraftCosts, Measured
from lope.engine.engine import Engine
from lope.engine.opening import load
from lope.engine.parts import Parts
from lope.models.table import TableModel, TableSession

PLAN = CalibrationPlan((1, 2, 4, 8), (16, 64), rounds=3, plain=3, drafts=12, pass_seconds=60.0, draft_seconds=60.0)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("LOPE_HOME", fresh_home(tmp_path / "home"))
    return tmp_path / "home" / "calibrations"


class PlantedTarget:
    """A table whose passes take what is planted, on a clock of its own; hiccups[k] seconds more in pass k."""

    def __init__(self, seconds: Any, hiccups: dict[int, float] | None = None) -> None:
        self._model = TableModel(16, context=200)
        self._seconds = seconds
        self._hiccups = hiccups or {}
        self.now = 0.0
        self.passes = 0

    def open(self, prompt: Any) -> TableSession:
        return self._model.open(prompt)

    def score(self, jobs: Sequence[Job[TableSession]]) -> list[Scores]:
        [job] = jobs
        rows = job.session.pending + len(job.draft)
        self.now += self._seconds(rows, len(job.session.ids)) + self._hiccups.get(self.passes, 0.0)
        self.passes += 1
        return self._model.score(jobs)


def timed(target: PlantedTarget, plan: CalibrationPlan = PLAN, room: int = 200) -> dict[int, Measured]:
    return PassTimer(target, Needs(logits=1), 16, room, plan, clock=lambda: target.now).run()


def planted(rows: int, context: int) -> float:
    return 0.02 + 0.001 * rows + 0.0001 * context


def test_passes_are_measured_at_every_size():
    found = timed(PlantedTarget(planted))
    assert list(found) == [16, 64]
    for context, measured in found.items():
        assert measured.sizes == (1, 2, 4, 8)
        expected = [planted(rows, context + 1) for rows in measured.sizes]
        assert measured.seconds == pytest.approx(expected)
        assert measured.spread == pytest.approx([0.0] * 4, abs=1e-9)
        assert measured.counts == (3,) * 4, "the first pass of each size warms up"


def test_a_hiccup_does_not_move_a_median():
    calm, shaken = timed(PlantedTarget(planted)), timed(PlantedTarget(planted, {12: 5.0, 13: 5.0, 20: 1.0}))
    for context in calm:
        assert shaken[context].seconds == pytest.approx(calm[context].seconds)


def test_a_slow_machine_is_left_in_time():
    """Passes of 3 s: the limit is kept to within a pass, and what was measured is a curve."""
    plan = dataclasses.replace(PLAN, pass_seconds=20.0)
    target = PlantedTarget(lambda rows, context: 3.0)
    found = timed(target, plan)
    assert target.now <= 20.0
    assert found[16].sizes
    found = timed(PlantedTarget(lambda rows, context: 30.0), plan)
    assert [measured.sizes for measured in found.values()] == [(1,)]


def test_sizes_fit_the_context():
    assert list(timed(PlantedTarget(planted), room=40)) == [16]
    tiny = timed(PlantedTarget(planted), room=6)
    assert list(tiny) == [3]
    assert tiny[3].sizes == (1, 2)


@pytest.fixture
def engine(tiny_model) -> Engine:
    return Engine(tiny_model(), Parts(), exact=True)


def test_an_engine_is_measured_saved_and_found_again(engine, home):
    calibration = EngineCalibration(engine)
    assert calibration.saved() is None
    record = calibration.measure(PLAN)
    assert record.contexts == (16, 64)
    assert record.drafters[calibration.drafter].by_depth.sizes[-1] == 10, "an n-gram draft has up to ten tokens"
    assert calibration.save(record) == str(home / f"{calibration.place.fingerprint}.json")
    assert EngineCalibration(engine).saved() == record.calibration(calibration.drafter)
    assert Engine(engine.model, Parts(), exact=True).calibration == record.calibration(calibration.drafter)


def test_a_model_drafter_and_none(engine, tiny_folder):
    none = EngineCalibration(Engine(engine.model, Parts("none"), exact=True)).measure(PLAN)
    assert none.calibration("none | shape chain | stop never").deepest == 0
    parts = Parts(f"model:path={tiny_folder(seed=1)}", shape="rsd_c:branching=2-2-1")
    calibration = EngineCalibration(Engine(engine.model, parts, exact=True))
    record = calibration.measure(PLAN)
    assert record.drafters[calibration.drafter].nodes == (2, 6, 10)
    assert record.calibration(calibration.drafter).nodes == (0, 2, 6, 10)


def test_loading_measures_nothing(tiny_folder, home, capsys, monkeypatch):
    monkeypatch.setattr(EngineCalibration, "measure", lambda *_, **__: pytest.fail("measured"))
    engine = load(str(tiny_folder()), policy="calibrated", dtype="float32")
    assert engine.calibration is None
    load(str(tiny_folder()), dtype="float32").generate("the cat", max_new_tokens=4)
    assert capsys.readouterr().err == ""
    assert not home.exists()


def test_calibrated_measures_once_and_says_so(tiny_folder, home, capsys, monkeypatch):
    monkeypatch.setattr("lope.engine.calibration.QUICK", dataclasses.replace(PLAN, quick=True))
    engine = load(str(tiny_folder()), policy="calibrated", dtype="float32")
    first = engine.generate("the cat sat on the mat", max_new_tokens=24)
    said = capsys.readouterr().err
    assert said.startswith("lope: there is no calibration of this model on this machine: measuring for up to 20 s")
    assert len(said.splitlines()) == 1
    assert len(list(home.glob("*.json"))) == 1
    again = load(str(tiny_folder()), policy="calibrated", dtype="float32")
    assert again.generate("the cat sat on the mat", max_new_tokens=24).tokens == first.tokens
    assert again.plain().generate("the cat sat on the mat", max_new_tokens=24).tokens == first.tokens
    assert capsys.readouterr().err == ""


def test_a_batch_says_what_each_says_alone(tiny_folder, monkeypatch):
    monkeypatch.setattr("lope.engine.calibration.QUICK", dataclasses.replace(PLAN, quick=True))
    engine = load(str(tiny_folder()), policy="calibrated", dtype="float32")
    asks = ["the cat sat on the mat " * 3, "the dog", "and and and and and"]
    together = engine.generate_batch(asks, raw=True, max_new_tokens=30)
    for ask, answer in zip(asks, together, strict=True):
        assert engine.plain().generate(ask, raw=True, max_new_tokens=30).tokens == answer.tokens


def test_the_quick_plan_is_within_twenty_seconds():
    assert QUICK.pass_seconds + QUICK.draft_seconds <= 15.0, "reading the prompts and one pass more come on top"


def test_a_folder_that_cannot_be_written_stops_no_answer(tiny_folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("lope.engine.calibration.QUICK", dataclasses.replace(PLAN, quick=True))
    engine = load(str(tiny_folder()), policy="calibrated", dtype="float32")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOPE_HOME", str(tmp_path / "file"))
    assert engine.generate("the cat", max_new_tokens=4).tokens
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "cannot be written" in lines[1]


class Broken:
    """A drafter that raises."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def propose(self, asks: Any) -> Any:
        raise ZeroDivisionError("planted")


def test_a_drafter_that_raises_leaves_no_calibration(engine, home, capsys, monkeypatch):
    monkeypatch.setattr("lope.engine.calibration.QUICK", dataclasses.replace(PLAN, quick=True))
    parts = Parts(policy="calibrated")
    failing = Engine(engine.model, parts, exact=True, drafter=Broken(engine.drafter))
    with pytest.raises(DraftError, match="ZeroDivisionError: planted"):
        failing.generate("the cat", max_new_tokens=4)
    forgiving = Engine(engine.model, parts, exact=True, drafter=Broken(engine.drafter), on_draft_error="fall-back")
    plain = engine.plain().generate("the cat", max_new_tokens=12).tokens
    assert forgiving.generate("the cat", max_new_tokens=12).tokens == plain
    assert "planted" in capsys.readouterr().err.splitlines()[-1]
    assert not home.exists()


PLACE = CalibrationPlace("Lean, 9 parameters", "float32", "cpu", 2, True, "Some CPU x2", "2.13.0", "native")
MEASURED = Measured((1, 2, 4), (0.02, 0.03, 0.05), (0.0, 0.0, 0.0), (3, 3, 3))
DRAFTS = {"ngram": DraftCosts(Measured((1, 2), (1e-5, 1e-5), (0.0, 0.0), (3, 3)), (1, 2))}
RECORD = CalibrationRecord(PLACE, "smollm2", "2026-01-01", False, (64,), (MEASURED,), 0.001, DRAFTS)


def test_drafters_are_kept_side_by_side(home):
    folder = CalibrationFolder.default()
    folder.write(RECORD)
    folder.write(dataclasses.replace(RECORD, overhead=0.002, drafters={"model": DRAFTS["ngram"]}))
    read = folder.read(PLACE)
    assert set(read.drafters) == {"ngram", "model"}
    assert read.overhead == 0.002
    with pytest.raises(UsageError, match=r"does not know the drafter suffix \(it knows: ngram, model\)"):
        read.calibration("suffix")
    assert [path.name for path in home.iterdir()] == [f"{PLACE.fingerprint}.json"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"threads": 1}, r"it is of threads 2 \(here 1\)"),
        ({"processor": "Another x8"}, r"it is of processor Some CPU x2 \(here Another x8\)"),
        ({"dtype": "bfloat16", "exact": False}, r"it is of dtype float32 \(here bfloat16\), exact True \(here False\)"),
        ({"torch": "3.0"}, r"torch 2.13.0 \(here 3.0\)"),
        ({"model": "Lean, 10 parameters"}, "there is no calibration of this model on this machine"),
    ],
)
def test_another_place_has_no_calibration_and_hears_of_the_nearest(change, words):
    folder = CalibrationFolder.default()
    folder.write(RECORD)
    folder.write(dataclasses.replace(RECORD, place=dataclasses.replace(PLACE, threads=64, dtype="float16", torch="1")))
    with pytest.raises(UsageError, match=words) as caught:
        folder.read(dataclasses.replace(PLACE, **change))
    assert "\n" not in str(caught.value)


def spoil(path: Path, change: Any) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(schema=0), "it has schema 0, this version of lope reads 2"),
        (lambda d: d.pop("schema"), "it has schema None"),
        (lambda d: d.pop("passes"), "it is damaged .KeyError"),
        (lambda d: d["passes"][0].update(seconds=[1.0, float("nan"), 2.0]), "it is damaged .*finite"),
        (lambda d: d["passes"][0].update(sizes=[4, 2, 1]), "it is damaged .*grow"),
        (lambda d: d.update(overhead="much"), "it is damaged .ValueError"),
        (lambda d: d.update(drafters=[]), "it is damaged .AttributeError"),
        (lambda d: d["place"].update(threads=1), r"it is of threads 1 \(here 2\)"),
    ],
)
def test_what_is_no_calibration_of_this_place_is_not_used(change, words):
    folder = CalibrationFolder.default()
    path = folder.write(RECORD)
    spoil(path, change)
    with pytest.raises(UsageError, match=words) as caught:
        folder.read(PLACE)
    assert str(path) in str(caught.value)
    assert "the calibration is not used" in str(caught.value)
    assert "\n" not in str(caught.value)
    folder.write(RECORD)
    assert folder.read(PLACE) == RECORD


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[1, 2", b"[]", b"3"])
def test_any_bytes_are_refused_in_one_line(content):
    folder = CalibrationFolder.default()
    folder.write(RECORD)
    folder.path(PLACE).write_bytes(content)
    with pytest.raises(UsageError, match="the calibration is not used"):
        folder.read(PLACE)


def test_a_disk_that_fills_leaves_the_calibration_that_was(monkeypatch):
    folder = CalibrationFolder.default()
    path = folder.write(RECORD)

    def full(self: Path, *_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(RunError, match="cannot be written: No space left on device"):
        folder.write(dataclasses.replace(RECORD, overhead=0.5))
    assert folder.read(PLACE) == RECORD
    assert list(folder.root.iterdir()) == [path]


def test_too_little_is_not_saved(engine, home):
    calibration = EngineCalibration(engine)
    one = Measured((1,), (1.0,), (0.0,), (1,))
    record = dataclasses.replace(RECORD, place=calibration.place, passes=(one,))
    with pytest.raises(RunError, match="time for passes of 1 size only"):
        calibration.save(record)
    assert not home.exists()


def test_threads_belong_to_the_place(engine, set_threads):
    one = CalibrationPlace.of(engine.model, True)
    set_threads(2)
    assert one.differences(CalibrationPlace.of(engine.model, True)) == ["threads 2 (here 1)"]
    assert torch.get_num_threads() == 2


def test_kernels_that_have_changed_are_measured_anew(engine, monkeypatch):
    one = CalibrationPlace.of(engine.model, True)
    monkeypatch.setattr(type(engine.model.backend), "kernels_version", "another")
    other = CalibrationPlace.of(engine.model, True)
    assert other.fingerprint != one.fingerprint
    assert [words.split()[0] for words in one.differences(other)] == ["kernels"]


class SlowDrafter:
    """An engine's drafter that seems to take 50 ms a step, by a clock of its own: no test waits."""

    def __init__(self, inner: Any, clock: "Clock") -> None:
        self._inner = inner
        self._clock = clock
        self.proposed = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def propose(self, asks: Any) -> list[Draft]:
        drafts: list[Draft] = self._inner.propose(asks)
        self._clock.skip += 0.05 * max(len(draft) for draft in drafts)
        self.proposed += any(len(draft) > 0 for draft in drafts)
        return drafts


class Clock:
    """Passes of 24 ms and 2 ms a row more, whatever the machine does."""

    def __init__(self) -> None:
        self.skip = 0.0

    def __call__(self) -> float:
        return self.skip


class Steady:
    """A target whose passes take their time on that clock."""

    def __init__(self, inner: Any, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def score(self, jobs: Any) -> Any:
        self._clock.skip += 0.022 + 0.002 * sum(1 + len(job.draft) for job in jobs)
        return self._inner.score(jobs)


@pytest.mark.parametrize("slow", [False, True])
def test_planted_slow_drafter_is_switched_off_within_one_prompt(engine, monkeypatch, slow):
    """Through the whole loop, n-gram drafts of a text that repeats: the calibration has them at microseconds."""
    made = EngineCalibration(engine)
    passes = Measured((1, 2, 64), (0.024, 0.026, 0.150), (0.0,) * 3, (9,) * 3)
    drafts = DraftCosts(Measured((1, 10), (1e-5, 1e-5), (0.0, 0.0), (9, 9)), (1, 10))
    record = dataclasses.replace(RECORD, place=made.place, passes=(passes,), drafters={made.drafter: drafts})
    made.save(record)
    clock = Clock()
    monkeypatch.setattr("lope.engine.loop.time.perf_counter", clock)
    drafter = SlowDrafter(engine.drafter, clock if slow else Clock())
    planted = Engine(engine.model, Parts(policy="calibrated"), exact=True, drafter=drafter)
    planted.loop.__dict__["target"] = Steady(planted.target, clock)
    answer = planted.generate("the cat sat on the mat " * 6, raw=True, max_new_tokens=64, ignore_stop=True)
    assert answer.stats.num_tokens == 64
    assert drafter.proposed <= 6 if slow else drafter.proposed > 12
