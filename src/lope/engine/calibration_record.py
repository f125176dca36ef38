"""What was measured, as it is saved: medians with their spread, and what is made of them."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, quantiles
from typing import Any

from lope.core.cost import Calibration, CostCurve
from lope.core.errors import LopeError, UsageError
from lope.engine.calibration_place import CalibrationPlace

SCHEMA = 2
_ENOUGH_SIZES = 3


@dataclass(frozen=True)
class Measured:
    """Seconds by size: medians, interquartile ranges, and how many measurements each comes from."""

    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    spread: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, samples: Mapping[int, Sequence[float]]) -> "Measured":
        """From the measurements of each size."""
        sizes = sorted(size for size, values in samples.items() if values)
        values = [samples[size] for size in sizes]
        counts = tuple(len(each) for each in values)
        return cls(tuple(sizes), tuple(map(median, values)), tuple(map(interquartile, values)), counts)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Measured":
        """As written by `dataclasses.asdict`."""
        return cls(**{field.name: tuple(document[field.name]) for field in dataclasses.fields(cls)})

    def curve(self) -> CostCurve:
        """The medians, smoothed so that they never fall."""
        return CostCurve.smoothed(self.sizes, self.seconds)


@dataclass(frozen=True)
class DraftCosts:
    """Seconds of one draft by its depth, and its nodes at these depths. Without sizes: nothing was ever drafted."""

    by_depth: Measured
    nodes: tuple[int, ...]

    def nodes_by_depth(self) -> tuple[int, ...]:
        """nodes[d] of a draft d deep, linear between the depths seen; each level has at least one."""
        known = list(zip((0, *self.by_depth.sizes), (0, *self.nodes), strict=True))
        nodes = [0]
        for (left, low), (right, high) in pairwise(known):
            for depth in range(left + 1, right + 1):
                wish = low + (high - low) * (depth - left) / (right - left)
                nodes.append(max(nodes[-1] + 1, math.ceil(wish - 1e-9)))
        return tuple(nodes)


@dataclass(frozen=True)
class CalibrationRecord:
    """One file. Passes belong to the target; drafting to each drafter that was measured beside it."""

    place: CalibrationPlace
    name: str
    made: str
    quick: bool
    contexts: tuple[int, ...]
    passes: tuple[Measured, ...]
    overhead: float
    drafters: dict[str, DraftCosts]

    @property
    def complete(self) -> bool:
        """Whether there was time for more than the very first passes: what is kept is relied on for long."""
        return any(len(measured.sizes) >= _ENOUGH_SIZES for measured in self.passes)

    def calibration(self, drafter: str) -> Calibration:
        """The costs of this target with one drafter. Raises UsageError where that one was not measured."""
        if drafter not in self.drafters:
            raise UsageError(f"it does not know the drafter {drafter} (it knows: {', '.join(self.drafters)})")
        drafts = self.drafters[drafter]
        curves = tuple(measured.curve() for measured in self.passes)
        drafting = drafts.by_depth.curve() if drafts.by_depth.sizes else None
        return Calibration(self.contexts, curves, self.overhead, drafting, drafts.nodes_by_depth())

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {"schema": SCHEMA, **dataclasses.asdict(self)}

    @classmethod
    def from_document(cls, document: Any) -> "CalibrationRecord":
        """Read `document`. Raises UsageError that says what is wrong with it."""
        schema = document.get("schema") if isinstance(document, dict) else None
        if schema != SCHEMA:
            raise UsageError(f"it has schema {schema}, this version of lope reads {SCHEMA}")
        try:
            record = cls(
                place=CalibrationPlace.from_document(document["place"]),
                name=str(document["name"]),
                made=str(document["made"]),
                quick=bool(document["quick"]),
                contexts=tuple(document["contexts"]),
                passes=tuple(Measured.from_document(each) for each in document["passes"]),
                overhead=float(document["overhead"]),
                drafters={
                    name: DraftCosts(Measured.from_document(each["by_depth"]), tuple(each["nodes"]))
                    for name, each in document["drafters"].items()
                },
            )
            for drafter in record.drafters:
                record.calibration(drafter)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            what = str(error) if isinstance(error, LopeError) else f"{type(error).__name__}: {error}"
            raise UsageError(f"it is damaged ({what})") from None
        return record


def interquartile(values: Sequence[float]) -> float:
    """The range of the middle half; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    low, _, high = quantiles(values, n=4, method="inclusive")
    return high - low
