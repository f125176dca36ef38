"""Ends a draft where its entropy bounds the acceptance rate too low: Zhang et al. 2024 (SVIP, arXiv:2411.18462), eq. 5.

The acceptance rate is 1 - TV(target, draft) >= 1 - sqrt(KL / 2), and KL is about proportional to the draft's entropy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lope.core import checks
from lope.core.protocols import Laws, Memo


@dataclass(frozen=True)
class SvipStop:
    """Stops below a row with sqrt(factor · H) > threshold, H its entropy in nats; at temperature 0 of the softmax at 1.

    The defaults are those of the authors' code.
    """

    threshold: float = 0.3
    factor: float = 0.15

    def __post_init__(self) -> None:
        checks.at_least("threshold", self.threshold, 0.0)
        checks.above("factor", self.factor, 0.0)

    def should_stop(self, laws: Laws, memos: Sequence[Memo]) -> list[tuple[bool, Memo]]:
        """Compare each row's entropy."""
        entropy = torch.special.entr(laws.rows.probabilities().values).sum(dim=-1)
        return [(stop, ()) for stop in ((self.factor * entropy).sqrt() > self.threshold).tolist()]
