"""Cost curves: piecewise linear, never falling; expected speed as written down by hand."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lope.core.cost import Calibration, CostCurve, expected_tokens
from lope.core.errors import SettingError


def test_a_curve_is_linear_between_its_sizes():
    curve = CostCurve((1, 3, 7), (10.0, 20.0, 20.0))
    assert [curve.at(size) for size in (0, 1, 2, 3, 5, 7, 9)] == [10.0, 10.0, 15.0, 20.0, 20.0, 20.0, 20.0]
    assert CostCurve((1, 3), (10.0, 20.0)).at(5) == 30.0
    assert CostCurve((2,), (10.0,)).at(6) == 30.0
    assert CostCurve((2,), (10.0,)).at(1) == 10.0


def test_smoothing_pools_what_falls():
    """3, 1 is pooled to 2, 2; nothing else moves (Ayer et al. 1955)."""
    assert CostCurve.smoothed((1, 2, 4, 8), (1.0, 3.0, 1.0, 5.0)).seconds == (1.0, 2.0, 2.0, 5.0)
    assert CostCurve.smoothed((1, 2, 4), (6.0, 3.0, 0.0)).seconds == (3.0, 3.0, 3.0)


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=12))
def test_smoothing_never_falls_and_keeps_the_mean(seconds):
    smooth = CostCurve.smoothed(range(1, len(seconds) + 1), seconds).seconds
    assert all(a <= b for a, b in pairwise(smooth))
    assert sum(smooth) == pytest.approx(sum(seconds))
    if all(a <= b for a, b in pairwise(seconds)):
        assert list(smooth) == seconds


@pytest.mark.parametrize(
    ("sizes", "seconds", "match"),
    [
        ((), (), "as many seconds as sizes"),
        ((1, 2), (1.0,), "as many seconds as sizes"),
        ((2, 1), (1.0, 2.0), "grow"),
        ((0, 1), (1.0, 2.0), "from 1"),
        ((1, 2), (2.0, 1.0), "never fall"),
        ((1,), (float("nan"),), "finite"),
        ((1,), (-1.0,), "finite"),
    ],
)
def test_what_is_no_curve_is_refused(sizes, seconds, match):
    with pytest.raises(SettingError, match=match):
        CostCurve(sizes, seconds)


HERE = Calibration(
    (64, 256),
    (CostCurve((1, 11), (0.020, 0.040)), CostCurve((1, 11), (0.024, 0.048))),
    0.001,
    CostCurve((1, 2), (0.004, 0.006)),
    (0, 1, 2, 3),
)


def test_passes_by_rows_and_context():
    assert HERE.seconds(1, 10) == pytest.approx(0.020)
    assert HERE.seconds(6, 64) == pytest.approx(0.030)
    assert HERE.seconds(6, 160) == pytest.approx(0.033)
    assert HERE.seconds(1, 448) == pytest.approx(0.028)


def test_expected_tokens():
    assert expected_tokens([0.5, 0.5, 1.0], 3) == 1.0 + 0.5 + 0.25 + 0.25
    assert expected_tokens([0.5, 0.5, 1.0], 1) == 1.5
    assert expected_tokens([0.5], 9) == 1.5
    assert expected_tokens([], 4) == 1.0


def test_speed_and_the_best_budget():
    speed = HERE.speed(2, 2, [0.5, 0.5], 64)
    assert speed == pytest.approx(1.75 / (0.006 + 0.024 + 0.001))
    assert HERE.best([0.9, 0.9, 0.9], 64) == (3, 3)
    assert HERE.best([0.0, 0.9], 64) == (0, 0)


def test_a_calibration_is_whole():
    with pytest.raises(SettingError, match="one cost curve for each"):
        Calibration((), (), 0.0)
    with pytest.raises(SettingError, match="context lengths of a calibration grow"):
        Calibration((2, 1), (HERE.passes[0],) * 2, 0.0)
    with pytest.raises(SettingError, match="overhead"):
        Calibration((1,), HERE.passes[:1], -1.0)
    with pytest.raises(SettingError, match="more nodes"):
        Calibration((1,), HERE.passes[:1], 0.0, None, (0, 2, 2))
