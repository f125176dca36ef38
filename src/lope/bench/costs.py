"""The calibration that our systems ran by, as it stands in a results file."""

from collections.abc import Mapping
from typing import Any

from lope.core.cost import Calibration, CostCurve
from lope.engine.calibration import EngineCalibration
from lope.engine.engine import Engine


def costs_of(system: str, engine: Engine) -> dict[str, Any] | None:
    """What was measured for this system's engine, as plain data; None where nothing was. Measures nothing."""
    found = EngineCalibration(engine).saved()
    if found is None:
        return None
    return {
        "system": system,
        "contexts": list(found.contexts),
        "passes": [_curve(curve) for curve in found.passes],
        "overhead": found.overhead,
        "drafting": None if found.drafting is None else _curve(found.drafting),
        "nodes": list(found.nodes),
    }


def calibration_of(costs: Mapping[str, Any]) -> Calibration:
    """The calibration again, from plain data."""
    drafting = costs["drafting"]
    return Calibration(
        contexts=tuple(costs["contexts"]),
        passes=tuple(CostCurve(tuple(curve["sizes"]), tuple(curve["seconds"])) for curve in costs["passes"]),
        overhead=costs["overhead"],
        drafting=None if drafting is None else CostCurve(tuple(drafting["sizes"]), tuple(drafting["seconds"])),
        nodes=tuple(costs["nodes"]),
    )


def _curve(curve: CostCurve) -> dict[str, list[Any]]:
    return {"sizes": list(curve.sizes), "seconds": list(curve.seconds)}
