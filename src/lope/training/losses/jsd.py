"""Jensen-Shannon divergence: the mean of both Kullback-Leibler divergences to the laws' mixture (Lin 1991)."""

import math
from dataclasses import dataclass

from torch import Tensor

from lope.training.losses.law import DraftLaw

_TINY = 1e-30


@dataclass(frozen=True)
class Jsd:
    """Where one law has nothing, the other's term is its mass times log 2."""

    def __call__(self, draft: DraftLaw) -> Tensor:
        """[n]."""
        target, drafted = draft.target.probabilities, draft.named
        middle = (0.5 * (target + drafted)).clamp(min=_TINY).log()
        shared = target * (target.clamp(min=_TINY).log() - middle) + drafted * (drafted.clamp(min=_TINY).log() - middle)
        alone = (2.0 - target.sum(-1) - drafted.sum(-1)) * math.log(2.0)
        return 0.5 * (shared.sum(-1) + alone)
