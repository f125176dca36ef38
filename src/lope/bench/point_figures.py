"""What one operating point of a drafter is worth: measured, by its parameters, and by the machine's calibration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lope.bench.operating_point import OperatingPoint
from lope.bench.record import Row
from lope.bench.summary import Figures
from lope.core.cost import Calibration


@dataclass(frozen=True)
class PointCosts:
    """What a point costs, in passes of one row. verify: v, a pass of all its rows. step: d, one level of its draft."""

    verify: float
    step: float

    @classmethod
    def of(cls, point: OperatingPoint, calibration: Calibration | None, context: int) -> "PointCosts | None":
        """By a calibration of the same drafter and shape; None where there is none, or it never drafted so deep."""
        if calibration is None or point.depth > calibration.deepest:
            return None
        one = calibration.seconds(1, context)
        verify = calibration.seconds(1 + point.nodes, context) / one
        return cls(verify, calibration.draft_seconds(point.depth) / point.depth / one)


@dataclass(frozen=True)
class PointFigures:
    """One operating point over a suite.

    acceptance: P(position k accepted | position k - 1 accepted), pooled over all depths of the same shape.
    mbsu:       memory-bound speed-up, tokens per pass / (c·depth + 1).
    modelled:   tokens per pass / (v + depth·d), with the calibration's costs; None where it has none.
    expected:   speed-up by the calibration and by `acceptance` alone, the rest of a round included.
    """

    point: OperatingPoint
    measured: Figures
    acceptance: tuple[float, ...]
    mbsu: float | None
    costs: PointCosts | None
    modelled: float | None
    expected: float | None

    @classmethod
    def of(
        cls,
        point: OperatingPoint,
        rows: Sequence[Row],
        reference: Mapping[str, Row],
        acceptance: tuple[float, ...],
        draft_cost: float,
        calibration: Calibration | None,
        context: int,
    ) -> "PointFigures":
        """rows: the point's. reference: plain decoding's, by prompt. draft_cost: c."""
        measured = Figures.of(rows, reference)
        tau = measured.tokens_per_pass
        costs = PointCosts.of(point, calibration, context)
        expected = None
        if calibration is not None and costs is not None:
            plain = calibration.speed(0, 0, (), context)
            expected = calibration.speed(point.nodes, point.depth, acceptance, context) / plain
        return cls(
            point=point,
            measured=measured,
            acceptance=acceptance[: point.depth],
            mbsu=None if tau is None else tau / (draft_cost * point.depth + 1.0),
            costs=costs,
            modelled=None if tau is None or costs is None else tau / (costs.verify + point.depth * costs.step),
            expected=expected,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        costs = self.costs
        return {
            "name": self.point.name,
            "shape": self.point.shape,
            "depth": self.point.depth,
            "nodes": self.point.nodes,
            **self.measured.bounds(),
            "acceptance": list(self.acceptance),
            "mbsu": self.mbsu,
            "verify_cost": costs and costs.verify,
            "step_cost": costs and costs.step,
            "modelled_speedup": self.modelled,
            "expected_speedup": self.expected,
            "tokens_per_second": self.measured.rate,
            "agreement": self.measured.agreement,
        }
