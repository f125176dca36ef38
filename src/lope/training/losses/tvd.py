"""Total variation distance, 1 - sum of min(target, draft): the probability that a drafted token is rejected."""

from dataclasses import dataclass

from torch import Tensor

from lope.training.losses.law import DraftLaw


@dataclass(frozen=True)
class Tvd:
    """The very objective of speculative sampling; its gradient vanishes where the laws hardly overlap."""

    def __call__(self, draft: DraftLaw) -> Tensor:
        """[n]."""
        return 1.0 - draft.acceptance
