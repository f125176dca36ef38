"""λ·KL + (1 - λ)·TVD with λ = exp(-decay · acceptance) (LK losses, arXiv:2602.23881): KL first, then the objective."""

from dataclasses import dataclass

from torch import Tensor

from lope.core import checks
from lope.training.losses.kld import Kld
from lope.training.losses.law import DraftLaw
from lope.training.losses.tvd import Tvd


@dataclass(frozen=True)
class Lk:
    """λ falls as the mean acceptance of the places at hand rises."""

    decay: float = 3.0

    def __post_init__(self) -> None:
        checks.above("decay", self.decay, 0.0)

    def __call__(self, draft: DraftLaw) -> Tensor:
        """[n]."""
        weight = (-self.decay * draft.acceptance.detach().mean()).exp()
        return weight * Kld()(draft) + (1.0 - weight) * Tvd()(draft)
