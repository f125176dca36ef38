"""Figures of an operating point against sums done by hand, and which point is the best one."""

import pytest

from lope.bench.evaluation import Evaluation
from lope.bench.operating_point import OperatingPoint
from lope.bench.point_figures import PointFigures
from lope.bench.record import Row, Turn
from lope.bench.summary import Summary
from lope.core.cost import Calibration, CostCurve

CHAIN = OperatingPoint.several(["chain:depth=4"], [1, 2, 4])


def rows(point: OperatingPoint, steps: tuple[tuple[int, float], ...], passes: int) -> list[Row]:
    tokens = tuple(range(sum(count for count, _ in steps)))
    return [Row("a", "qa", "qa", point.name, (Turn(10, tokens, steps, passes, 9, 5, (3, 2), (2, 1)),))]


def calibration(row: float, level: float, deepest: int = 4) -> Calibration:
    """A pass takes 20 ms and `row` more for each further row; a level of a draft takes `level`."""
    passes = CostCurve((1, 33), (0.020, 0.020 + 32 * row))
    drafting = CostCurve(tuple(range(1, deepest + 1)), tuple(level * depth for depth in range(1, deepest + 1)))
    return Calibration((64,), (passes,), 0.002, drafting, tuple(range(deepest + 1)))


def figures(
    point: OperatingPoint, machine: Calibration | None, acceptance: tuple[float, ...] = (0.5, 0.25)
) -> PointFigures:
    measured = rows(point, ((1, 0.1), (2, 0.04), (3, 0.04), (1, 0.04)), 3)
    plain = rows(point, ((1, 0.1), *(((1, 0.02),) * 6)), 6)
    return PointFigures.of(point, measured, {"a": plain[0]}, acceptance, 0.1, machine, 100)


def test_the_figures_of_a_point_are_those_of_the_blueprint() -> None:
    found = figures(CHAIN[1], calibration(row=0.001, level=0.003))
    tau = 6 / 3
    assert found.measured.tau is not None
    assert found.measured.tau.value == found.measured.tokens_per_pass == tau
    assert found.mbsu == pytest.approx(tau / (0.1 * 2 + 1))
    assert found.costs is not None
    assert (found.costs.verify, found.costs.step) == pytest.approx((22 / 20, 3 / 20))
    assert found.modelled == pytest.approx(tau / (22 / 20 + 2 * 3 / 20))
    # 1 + 0.5 + 0.5 * 0.25 tokens in 22 + 6 + 2 ms; plain: one in 20 + 2 ms
    assert found.expected == pytest.approx(1.625 / 30 * 22)
    assert found.measured.speedup is not None
    assert found.measured.speedup.median == pytest.approx((6 / 0.12) / (6 / 0.12))
    assert found.to_json()["tokens_per_pass_low"] == tau


@pytest.mark.parametrize("machine", [calibration(0.001, 0.003, deepest=2), None])
def test_a_calibration_that_never_drafted_so_deep_says_nothing(machine: Calibration | None) -> None:
    found = figures(CHAIN[2], machine)
    assert (found.costs, found.modelled, found.expected) == (None, None, None)
    assert found.mbsu is not None


@pytest.mark.parametrize(
    ("row", "level", "acceptance", "best"),
    [
        (0.0, 0.0, (0.9, 0.9, 0.9, 0.9), 4),
        (0.0, 0.006, (0.9, 0.2, 0.2, 0.2), 1),
        (0.002, 0.002, (0.9, 0.8, 0.1, 0.1), 2),
    ],
)
def test_the_best_point_is_chosen_by_costs_and_acceptance(
    row: float, level: float, acceptance: tuple[float, ...], best: int
) -> None:
    points = tuple(figures(point, calibration(row, level), acceptance) for point in CHAIN)
    empty = Summary("plain", (), {}, {})
    found = Evaluation({}, 0.1, 100, points, {}, empty)
    assert found.best is not None
    assert found.best.point.depth == best
    told = found.operating_point()
    assert told is not None
    assert (told["shape"], told["depth"], told["nodes"]) == ("chain:depth=4", best, best)
    unknown = Evaluation({}, 0.1, 100, (figures(CHAIN[2], calibration(0.001, 0.003, deepest=2)),), {}, empty)
    assert unknown.operating_point() is None
