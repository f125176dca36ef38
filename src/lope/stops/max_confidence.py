"""Ends a draft where the drafter is unsure of its best token: Xia et al. 2024 (SWIFT, arXiv:2410.06916)."""

from collections.abc import Sequence
from dataclasses import dataclass

from lope.core import checks
from lope.core.protocols import Laws, Memo


@dataclass(frozen=True)
class MaxConfidenceStop:
    """Stops below a row whose largest probability is under `threshold`; at temperature 0 that of the softmax at 1."""

    threshold: float = 0.8

    def __post_init__(self) -> None:
        checks.between("threshold", self.threshold, 0.0, 1.0)

    def should_stop(self, laws: Laws, memos: Sequence[Memo]) -> list[tuple[bool, Memo]]:
        """Compare each row's largest probability."""
        largest = laws.rows.probabilities().values.amax(dim=-1)
        return [(stop, ()) for stop in (largest < self.threshold).tolist()]
