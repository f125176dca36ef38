"""Ticks: durations as whole multiples of one unit, so that two sums that are equal are equal in the machine too."""

import numpy as np

from lope.graphs.graph import Floats


def whole_ticks(durations: Floats) -> tuple[Floats, float]:
    """`(ticks, size)` with `durations = ticks * size`; ticks are whole floats if six decimals and 2^53 allow it.

    List scheduling asks whether finish times are *equal*. 0.1 + 0.2 is not 0.3 in floats, so durations that are
    short decimals (TPC-H has milliseconds with three) are scaled up first; any others are used as they are, size 1.
    """
    for decimals in range(7):
        scaled = durations * 10.0**decimals
        rounded = np.round(scaled)
        if rounded.sum() >= 2.0**53:
            break
        if np.allclose(scaled, rounded, rtol=1e-12, atol=1e-9):
            return rounded, 10.0**-decimals
    return durations, 1.0
