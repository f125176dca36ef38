"""Rows over the vocabulary of which only some columns are held: logits, or probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Rows:
    """r rows over a vocabulary of `size` tokens, of which C columns are held.

    values: [r, C]; float32 in the engine, float64 where a caller computes so.
    ids:    int64 [C] shared by all rows, or [r, C]; None: column = token. Unique within a row.
    rest:   the value of every column that is not held: 0.0 for probabilities, -inf for logits.
    total:  [r], the log-sum-exp of the whole row, where logits were left out.
    """

    values: Tensor
    ids: Tensor | None
    size: int
    rest: float
    total: Tensor | None = None

    def __len__(self) -> int:
        return self.values.shape[0]

    def select(self, rows: Sequence[int]) -> "Rows":
        """The rows of these numbers, in this order."""
        if len(rows) == 1:
            keep: slice | Tensor = slice(rows[0], rows[0] + 1)
        else:
            keep = torch.as_tensor(rows, dtype=torch.int64, device=self.values.device)
        ids = self.ids if self.ids is None or self.ids.dim() == 1 else self.ids[keep]
        return Rows(self.values[keep], ids, self.size, self.rest, None if self.total is None else self.total[keep])

    def tokens(self, row: int, columns: Tensor) -> Tensor:
        """The token ids of some columns of one row."""
        if self.ids is None:
            return columns
        return (self.ids if self.ids.dim() == 1 else self.ids[row])[columns]

    def held(self, row: int) -> Tensor:
        """The token ids that one row holds, in column order: int64 [C]."""
        if self.ids is None:
            return torch.arange(self.size, device=self.values.device)
        return self.ids if self.ids.dim() == 1 else self.ids[row]

    def dense(self, row: int) -> Tensor:
        """One row over the whole vocabulary: [size]."""
        if self.ids is None:
            return self.values[row]
        full = self.values.new_full((self.size,), self.rest)
        full[self.held(row)] = self.values[row]
        return full

    def probabilities(self) -> "Rows":
        """The rows as probabilities: themselves if they are, else the softmax (of whole rows if `total` is known)."""
        if self.rest == 0.0:
            return self
        total = torch.logsumexp(self.values, dim=-1) if self.total is None else self.total
        return Rows((self.values - total[:, None]).exp(), self.ids, self.size, 0.0)


def stack(parts: Sequence[Rows]) -> Rows:
    """All rows one under another. Where the held columns differ, short rows are filled up with columns of `rest`."""
    first = parts[0]
    if len(parts) == 1:
        return first
    assert all(part.size == first.size and part.rest == first.rest for part in parts), "rows of different vocabularies"
    totals = [part.total for part in parts if part.total is not None]
    total = torch.cat(totals) if len(totals) == len(parts) else None
    if all(part.ids is None for part in parts):
        return Rows(torch.cat([part.values for part in parts]), None, first.size, first.rest, total)
    width = max(part.values.shape[1] for part in parts)
    filled = [_filled(part, width) for part in parts]
    return Rows(
        torch.cat([values for values, _ in filled]),
        torch.cat([ids for _, ids in filled]),
        first.size,
        first.rest,
        total,
    )


def _filled(rows: Rows, width: int) -> tuple[Tensor, Tensor]:
    """Values and ids [r, width]: the columns added are the lowest tokens that a row does not hold."""
    count, held = rows.values.shape
    ids = torch.stack([rows.held(row) for row in range(count)])
    if held == width:
        return rows.values, ids
    lowest = torch.arange(width, device=ids.device)
    free = torch.stack([lowest[~torch.isin(lowest, row)][: width - held] for row in ids])
    values = torch.cat([rows.values, rows.values.new_full(free.shape, rows.rest)], dim=1)
    return values, torch.cat([ids, free], dim=1)
