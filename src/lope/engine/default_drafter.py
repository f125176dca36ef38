"""Which drafter runs where none is named: `ngram`, and where it finds nothing the fastest shipped one that pays here.

How fast a shipped one is, is told by two things that were measured before: tokens per pass at the drafter's operating
point, which its folder says, and what passes and drafts cost on this machine, which a calibration says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lope.core.cost import Calibration
from lope.core.errors import LopeError
from lope.drafters.shipped_drafters import shipped
from lope.engine.calibration import known_as
from lope.engine.calibration_folder import CalibrationFolder
from lope.engine.calibration_place import CalibrationPlace
from lope.engine.parts import Parts
from lope.models.config_json import read_json
from lope.models.drafter_about import KINDS
from lope.models.drafter_folder import ABOUT
from lope.models.loaded import LoadedModel
from lope.shapes import SHAPES


@dataclass(frozen=True)
class DefaultDrafter:
    """drafter, shape, policy: as `Parts` takes them; policy None: by what is known of the machine.

    speedup: of the shipped drafter alone over plain decoding, as expected; 1.0 where there is none that pays. Copies
    come before it: they cost nothing where there are none (`hybrid`).
    """

    drafter: str = "ngram"
    shape: str = "chain"
    speedup: float = 1.0
    policy: str | None = None

    @classmethod
    def of(cls, model: LoadedModel, exact: bool, folder: CalibrationFolder | None = None) -> "DefaultDrafter":
        """With the fastest shipped drafter that this machine was calibrated with, if it beats plain decoding.

        Measures nothing.
        """
        best = cls()
        try:
            record = (folder or CalibrationFolder.default()).read(CalibrationPlace.of(model, exact))
        except LopeError:
            return best
        context = record.contexts[len(record.contexts) // 2]
        for kind, point in points(model):
            shape = str(point["shape"])
            name = known_as(Parts(drafter=kind, shape=shape))
            if name in record.drafters:
                speedup = _speedup(point, record.calibration(name), context)
                found = cls(f"hybrid:drafter={kind}", _cut(shape, int(point["depth"])), speedup, "fixed")
                best = max(best, found, key=lambda choice: choice.speedup)
        return best


def _cut(shape: str, depth: int) -> str:
    """No deeper than this: a budget would cut the copies too."""
    part = SHAPES.make(shape)
    return SHAPES.spell(replace(part, depth=depth)) if hasattr(part, "depth") else shape


def points(model: LoadedModel) -> list[tuple[str, Mapping[str, Any]]]:
    """(kind, operating point) of each drafter that is shipped for the model and has one."""
    found = []
    for kind in KINDS:
        path = shipped(kind, model)
        point = None if path is None else read_json(path / ABOUT).get("operating_point")
        if point is not None:
            found.append((kind, point))
    return found


def _speedup(point: Mapping[str, Any], calibration: Calibration, context: int) -> float:
    """Tokens per pass, divided by what its rounds cost in plain ones; 0.0 where so deep a draft was never measured."""
    nodes, depth = int(point["nodes"]), int(point["depth"])
    if depth > calibration.deepest:
        return 0.0
    rounds = calibration.draft_seconds(depth) + calibration.seconds(1 + nodes, context) + calibration.overhead
    plain = calibration.seconds(1, context) + calibration.overhead
    return float(point["tokens_per_pass"]) * plain / rounds if rounds > 0.0 else 0.0
