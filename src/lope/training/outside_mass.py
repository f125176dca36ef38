"""How much probability is not kept where only a row's k largest log-probabilities are: by it k is chosen."""

from collections.abc import Sequence

import torch
from torch import Tensor

# the smallest of these is kept whose mean outside mass is below _ENOUGH, else the largest
SIZES = tuple(range(8, 129, 8))
_ENOUGH = 0.02


class OutsideMass:
    """Means over answer tokens, for several k at once."""

    def __init__(self, sizes: Sequence[int]) -> None:
        """sizes: ascending, none above the vocabulary."""
        self.sizes = tuple(sizes)
        self.count = 0
        self._sums = torch.zeros(len(self.sizes), dtype=torch.float64)

    @classmethod
    def choosing(cls, vocab_size: int) -> "OutsideMass":
        """One that can choose k."""
        return cls([size for size in SIZES if size < vocab_size] or [vocab_size])

    def note(self, logprobs: Tensor) -> None:
        """More rows: log-probabilities [r, at least the largest size], descending."""
        inside = logprobs[:, : self.sizes[-1]].double().exp().cumsum(dim=-1)
        columns = torch.tensor(self.sizes, device=inside.device) - 1
        self._sums += (1.0 - inside[:, columns]).clamp_min(0.0).sum(dim=0).cpu()
        self.count += len(logprobs)

    def mean(self, size: int) -> float:
        """Mean probability outside the `size` largest; 0 where nothing was noted."""
        return float(self._sums[self.sizes.index(size)]) / max(1, self.count)

    def choice(self) -> int:
        """The smallest size that leaves out less than 2 % on average, else the largest."""
        return next((size for size in self.sizes if self.mean(size) < _ENOUGH), self.sizes[-1])
