"""TVD++ (Goel, Gagrani et al. 2024, arXiv:2403.00858): total variation as a policy gradient, its reward normalised.

    grad TVD = -E_{x ~ draft}[ r(x) · grad log draft(x) ],  r(x) = 1{target(x) > draft(x)}
    TVD++:     r -> (r - mean) / std

Which mean and std: those of each place, under the draft's own law there: mean = m = draft(target > draft), std =
sqrt(m (1 - m)). The expectation is taken over the whole vocabulary, so a mean that is subtracted changes no gradient
(grad E[1] = 0), and one std for the whole batch would only be another step size, which Adam does not see: TVD++ would
be TVD. With the std of each place it weighs places: those where the draft is nearly all wrong (m near 0) or nearly all
right (m near 1) count more than under TVD. The paper's variance reduction holds where tokens are sampled, which a
full expectation makes needless (tests/training/test_losses.py shows both).
"""

from dataclasses import dataclass

from torch import Tensor

from lope.core import checks
from lope.training.losses.law import DraftLaw


@dataclass(frozen=True)
class TvdPlusPlus:
    """smallest_std: a bound on the weight of a place, 1 / std."""

    smallest_std: float = 0.1

    def __post_init__(self) -> None:
        checks.between("smallest_std", self.smallest_std, 1e-6, 0.5)

    def __call__(self, draft: DraftLaw) -> Tensor:
        """[n]: the value is that of TVD, as a log should show it; the gradient, by a surrogate of value 0, of TVD++."""
        reward = (draft.target.probabilities > draft.named).float()
        mean = (draft.named * reward).sum(-1).detach()
        std = (mean * (1.0 - mean)).clamp(min=0.0).sqrt().clamp(min=self.smallest_std)
        return 1.0 - draft.acceptance.detach() + (mean - (draft.named * reward).sum(-1)) / std
