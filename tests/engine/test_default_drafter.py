"""Without a drafter named: the fastest of the shipped ones where this machine's calibration tells, else ngram."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.homes import fresh_home
from tests.models import random_drafter

from lope.engine.calibration_folder import CalibrationFolder
from lope.engine.calibration_place import CalibrationPlace
from lope.engine.calibration_record import CalibrationRecord, DraftCosts, Measured
from lope.engine.default_drafter import DefaultDrafter
from lope.engine.opening import UNCALIBRATED, load
from lope.models.loaded import LoadedModel

PASSES = Measured((1, 8, 16), (0.02, 0.02, 0.03), (0.0,) * 3, (5,) * 3)
EAGLE, STANDALONE = "eagle | shape rsd_s:width=4,depth=4 | stop never", "standalone | shape chain:depth=4 | stop never"
POINTS = {
    "eagle": {"shape": "rsd_s:width=4,depth=4", "depth": 4, "nodes": 15, "tokens_per_pass": 3.2},
    "standalone": {"shape": "chain:depth=4", "depth": 4, "nodes": 4, "tokens_per_pass": 2.4},
}


def drafts(seconds: float, depths: int = 4) -> DraftCosts:
    """A draft that takes `seconds` for each level."""
    levels = tuple(range(1, depths + 1))
    return DraftCosts(Measured(levels, tuple(seconds * d for d in levels), (0.0,) * depths, (5,) * depths), levels)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOPE_HOME", fresh_home(tmp_path / "home"))
    monkeypatch.setattr("lope.drafters.shipped_drafters.SHIPPED", tmp_path / "shipped")


@pytest.fixture
def ship(tmp_path: Path, tiny_folder: Callable[..., Path]) -> Callable[..., None]:
    """Ships a drafter of a kind for the tiny target, with an operating point."""

    def make(kind: str, **changes: Any) -> None:
        place = tmp_path / "shipped" / kind
        place.mkdir(parents=True)
        for file in random_drafter.beside(tiny_folder(), kind).iterdir():
            (place / file.name).write_bytes(file.read_bytes())
        document = json.loads((place / "drafter.json").read_text())
        document["operating_point"] = {**POINTS[kind], **changes}
        (place / "drafter.json").write_text(json.dumps(document))

    return make


def calibrated(model: LoadedModel, **costs: DraftCosts) -> None:
    place = CalibrationPlace.of(model, exact=True)
    names = {"eagle": EAGLE, "standalone": STANDALONE, "ngram": "ngram | shape chain | stop never"}
    known = {names[kind]: cost for kind, cost in costs.items()}
    CalibrationFolder.default().write(CalibrationRecord(place, "t", "now", False, (64,), (PASSES,), 0.001, known))


def chosen(model: LoadedModel) -> tuple[str, str]:
    found = DefaultDrafter.of(model, exact=True)
    return found.drafter, found.shape


def test_the_faster_one_by_this_machines_costs(
    tiny_model: Callable[..., LoadedModel], ship: Callable[..., None]
) -> None:
    """eagle: 3.2 tokens in 4·d + 30 ms + 1 ms; standalone: 2.4 in 4·d + 20 ms + 1 ms; plainly one in 21 ms."""
    model = tiny_model()
    ship("eagle")
    ship("standalone")
    assert chosen(model) == ("ngram", "chain"), "nothing has been measured"
    calibrated(model, ngram=drafts(1e-5))
    assert chosen(model) == ("ngram", "chain"), "other drafters have been measured"
    calibrated(model, eagle=drafts(0.001), standalone=drafts(0.002))
    assert DefaultDrafter.of(model, exact=True) == DefaultDrafter(
        "hybrid:drafter=eagle", "rsd_s", pytest.approx(3.2 * 21 / 35), "fixed"
    )
    calibrated(model, eagle=drafts(0.005), standalone=drafts(0.002))
    assert chosen(model) == ("hybrid:drafter=standalone", "chain:depth=4")
    calibrated(model, eagle=drafts(0.02), standalone=drafts(0.02))
    assert chosen(model) == ("ngram", "chain"), "both are slower than plain decoding"
    calibrated(model, eagle=drafts(0.001, depths=3), standalone=drafts(0.02))
    assert chosen(model) == ("ngram", "chain"), "no draft so deep has been measured"
    assert chosen(tiny_model("qwen2")) == ("ngram", "chain"), "another model"


def test_a_shape_is_no_deeper_than_the_best_point(
    tiny_model: Callable[..., LoadedModel], ship: Callable[..., None]
) -> None:
    ship("standalone", depth=1, nodes=1)
    calibrated(tiny_model(), standalone=drafts(0.002))
    assert chosen(tiny_model()) == ("hybrid:drafter=standalone", "chain:depth=1"), "copies may be longer"


def test_a_drafter_whose_best_point_is_not_known_is_not_chosen(
    tiny_model: Callable[..., LoadedModel], ship: Callable[..., None], tmp_path: Path
) -> None:
    ship("eagle")
    path = tmp_path / "shipped" / "eagle" / "drafter.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "operating_point": None}))
    calibrated(tiny_model(), eagle=drafts(0.001))
    assert chosen(tiny_model()) == ("ngram", "chain")


def test_where_costs_are_not_known_a_named_shape_runs_whole(tiny_folder: Callable[..., Path]) -> None:
    name = str(tiny_folder())
    assert load(name, dtype="float32").parts.policy == UNCALIBRATED
    assert load(name, dtype="float32", drafter="ngram").parts.policy == UNCALIBRATED
    assert load(name, dtype="float32", shape="chain:depth=6").parts.policy == "fixed"
    assert load(name, dtype="float32", shape="chain:depth=6", policy="heuristic").parts.policy == "heuristic"
    engine = load(name, dtype="float32", drafter="truncated:layers=1", shape="chain:depth=6")
    stats = engine.generate("the cat", max_new_tokens=20).stats
    assert stats.drafted > 4 * stats.passes


def test_loading_takes_it_and_measures_nothing(
    tiny_model: Callable[..., LoadedModel],
    tiny_folder: Callable[..., Path],
    ship: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measure(*_: Any, **__: Any) -> None:
        raise AssertionError("loading measures nothing")

    monkeypatch.setattr("lope.engine.calibration.EngineCalibration.measure", measure)
    ship("eagle")
    name = str(tiny_folder())
    assert load(name, dtype="float32").parts.drafter == "ngram"
    calibrated(tiny_model(), eagle=drafts(0.001))
    engine = load(name, dtype="float32")
    assert (engine.parts.drafter, engine.parts.shape) == ("hybrid:drafter=eagle", "rsd_s")
    assert engine.parts.policy == "fixed"
    assert engine.generate("the cat", max_new_tokens=6).tokens == load(name, drafter="none", dtype="float32").generate(
        "the cat", max_new_tokens=6
    ).tokens  # fmt: skip
    named = load(name, drafter="ngram", dtype="float32")
    assert (named.parts.drafter, named.parts.shape) == ("ngram", "chain")
    assert load(name, shape="rsd_c", dtype="float32").parts.shape == "rsd_c"
