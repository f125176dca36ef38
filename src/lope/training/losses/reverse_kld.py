"""Reverse Kullback-Leibler divergence: sum of draft · log(draft / target) (Gu et al. 2024, arXiv:2306.08543)."""

import math
from dataclasses import dataclass

from torch import Tensor

from lope.core import checks
from lope.training.losses.law import DraftLaw


@dataclass(frozen=True)
class ReverseKld:
    """Tokens that the target does not name count with probability `floor`, so that the divergence stays finite."""

    floor: float = 1e-6

    def __post_init__(self) -> None:
        checks.above("floor", self.floor, 0.0)

    def __call__(self, draft: DraftLaw) -> Tensor:
        """[n]."""
        target = draft.target.probabilities.clamp(min=self.floor).log()
        unnamed = (1.0 - draft.named.sum(-1)).clamp(min=0.0)
        return -draft.entropy - (draft.named * target).sum(-1) - unnamed * math.log(self.floor)
