"""What the target's law still owes at one node after some candidates were refused."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lope.core.protocols import Chance
from lope.core.rows import Rows


@dataclass(frozen=True, eq=False)
class Residual:
    """A law over the columns that the target's filtered row holds; every other token has mass zero.

    Nothing is lost by that: a residual max(0, target - draft) is zero wherever the target is.

    weights: [C], sums to 1, float32 or wider.
    ids:     int64 [C], the columns' tokens, or None: column = token.
    """

    weights: Tensor
    ids: Tensor | None

    @classmethod
    def of(cls, target: Rows) -> "Residual":
        """Before any test the target owes its whole law: one row of probabilities."""
        return cls(target.values[0], None if target.ids is None else target.held(0))

    def mass(self, token: int) -> float:
        """The probability of one token."""
        if self.ids is None:
            return float(self.weights[token])
        return float(self.weights[self.ids == token].sum())

    def minus(self, law: Tensor) -> "Residual | None":
        """norm(max(0, residual - law)) for a dense law [V]; None where nothing is left (a matter of rounding only)."""
        taken = law if self.ids is None else law[self.ids]
        return self._normalised((self.weights - taken).clamp_(min=0.0))

    def without(self, token: int) -> "Residual | None":
        """norm(max(0, residual - one-hot(token)))."""
        if self.ids is None:
            left = self.weights.clone()
            left[token] = 0.0
        else:
            left = self.weights.masked_fill(self.ids == token, 0.0)
        return self._normalised(left)

    def draw(self, chance: Chance, position: int) -> int:
        """A token of this law."""
        column = chance.order(self.weights, self.ids, 1, position)[0]
        return column if self.ids is None else int(self.ids[column])

    def _normalised(self, left: Tensor) -> "Residual | None":
        total = left.sum()
        return Residual(left.div_(total), self.ids) if float(total) > 0.0 else None


def dense_law(laws: Rows, row: int, like: Tensor) -> Tensor:
    """One draft law [V], summing to 1, where and at least as wide as `like`.

    Draws go by weight, so the law that was drawn from is the row divided by its sum, whatever rounding made of it.
    """
    law = laws.dense(row).to(like.device, torch.promote_types(like.dtype, laws.values.dtype))
    return law / law.sum()
