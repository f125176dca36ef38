"""A claim is read against the noise: only intervals that do not meet say anything."""

import pytest

from lope.bench.bootstrap import Interval
from lope.bench.report.claims import Claim


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(1.04, 1.2, "faster"), (1.02, 1.2, "alike"), (0.5, 0.97, "slower"), (0.5, 0.99, "alike"), (0.5, 2.0, "alike")],
)
def test_the_verdict(low: float, high: float, verdict: str) -> None:
    assert Claim(Interval(1.0, low, high), Interval(1.0, 0.98, 1.03)).verdict == verdict
