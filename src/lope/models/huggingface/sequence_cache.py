"""Keys and values of one sequence: what the layers of a transformers cache held for its rows."""

from collections.abc import Sequence

import torch
from torch import Tensor


class SequenceCache:
    """Rows [0, length) are committed, in context order; rows behind them are scratch of the last passes.

    layers: for each layer its keys and values, [1, heads, rows, width] each (widths may differ); [] before any pass.
        Tensors are replaced, never written into, so copies share them.
    """

    def __init__(self, layers: Sequence[tuple[Tensor, Tensor]] = (), length: int = 0) -> None:
        self.layers = list(layers)
        self.length = length

    @torch.inference_mode()
    def keep(self, kept: Sequence[int]) -> None:
        """Commit scratch rows `kept` (in context order) behind the committed ones; all others are dropped."""
        rows = [*range(self.length), *kept]
        self.length = len(rows)
        if rows == list(range(len(rows))):
            self.layers = [(keys[:, :, : self.length], values[:, :, : self.length]) for keys, values in self.layers]
            return
        index = torch.tensor(rows, dtype=torch.int64, device=self.layers[0][0].device)
        self.layers = [(keys.index_select(2, index), values.index_select(2, index)) for keys, values in self.layers]

    def fork(self) -> "SequenceCache":
        """An independent copy."""
        return SequenceCache(self.layers, self.length)
