"""Is what was counted what was expected? Pearson's chi-square, and Holm's correction for many tests at once."""

from collections.abc import Sequence

import torch
from torch import Tensor

_SMALLEST = 5.0


def chi_square(observed: Tensor, expected: Tensor) -> tuple[float, float]:
    """(statistic, p-value) of counts against a law (Pearson 1900); its size does not matter, only its proportions.

    observed: counts, any shape. expected: probabilities or expected counts, the same shape.
    Cells that expect fewer than 5 counts are pooled. A count where nothing is expected gives (inf, 0.0).
    """
    counts = observed.flatten().to(torch.float64)
    law = expected.flatten().to(torch.float64)
    if bool((counts[law <= 0.0] > 0).any()):
        return float("inf"), 0.0
    counts, law = counts[law > 0.0], law[law > 0.0]
    law, order = (law * (counts.sum() / law.sum())).sort()
    counts = counts[order]
    small = int((law < _SMALLEST).sum())
    while 0 < small < len(law) and float(law[:small].sum()) < _SMALLEST:
        small += 1
    if small:
        counts = torch.cat([counts[:small].sum()[None], counts[small:]])
        law = torch.cat([law[:small].sum()[None], law[small:]])
    statistic = ((counts - law) ** 2 / law).sum()
    freedom = len(law) - 1
    if freedom == 0:
        return float(statistic), 1.0
    half = torch.tensor(freedom / 2, dtype=torch.float64)
    return float(statistic), float(torch.special.gammaincc(half, statistic / 2))


def holm(p_values: Sequence[float], level: float) -> list[bool]:
    """Which hypotheses are rejected, with a chance of at most `level` that any true one is (Holm 1979)."""
    rejected = [False] * len(p_values)
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        if p_values[index] > level / (len(p_values) - rank):
            break
        rejected[index] = True
    return rejected
