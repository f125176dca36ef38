"""Which drafter runs where none is named: of those that lope ships for the target the fastest, else `ngram`.

How fast a shipped one is, is told by two things that were measured before: tokens per pass at the drafter's operating
point, which its folder says, and what passes and drafts cost on this machine, which a calibration says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class DefaultDrafter:
    """drafter, shape: as `Parts` takes them. speedup: over plain decoding as expected; of `ngram` as it was measured.

    Copies cost next to nothing and depend on the text more than on the machine: 1.19 is what they were worth on
    Spec-Bench under `calibrated` (benchmarks/speed/peers/results.json); what runs in their place must be worth more.
    """

    drafter: str = "ngram"
    shape: str = "chain"
    speedup: float = 1.19

    @classmethod
    def of(cls, model: LoadedModel, exact: bool, folder: CalibrationFolder | None = None) -> "DefaultDrafter":
        """The fastest shipped drafter that this machine was calibrated with, if it beats copies; else `ngram`.

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
                found = cls(kind, shape, _speedup(point, record.calibration(name), context))
                best = max(best, found, key=lambda choice: choice.speedup)
        return best


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
