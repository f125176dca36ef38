"""Keys and values of one sequence: one allocation, growing by doubling, rows moved only by the one who owns them."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lope.models.lean.config import DecoderConfig

_FIRST_SLOTS = 128


class SequenceCache:
    """store: [layers, 2 (keys, values), kv_heads, slots, head_dim]. Slots [0, length) are committed, in context order.

    Slots beyond `length` are scratch: a pass writes tree nodes there, and the next commit keeps those on the path.
    """

    def __init__(self, config: DecoderConfig, dtype: torch.dtype, device: torch.device) -> None:
        self._limit = config.context
        self._shape = (config.num_layers, 2, config.num_kv_heads)
        self._head_dim = config.head_dim
        self.length = 0
        self._allocate(torch.empty((*self._shape, 0, config.head_dim), dtype=dtype, device=device), _FIRST_SLOTS)

    @property
    def slots(self) -> int:
        """How many slots are allocated."""
        return self._store.shape[3]

    def layer(self, layer: int) -> Tensor:
        """[2, kv_heads, slots, head_dim] of one layer."""
        return self._layers[layer]

    @property
    def layer_stride(self) -> int:
        """How many numbers lie between one layer's first and the next layer's."""
        return self._store.stride(0)

    def reserve(self, slots: int) -> None:
        """Make room for `slots` slots, by doubling up to the model's context; scratch rows may lie beyond it."""
        if slots > self.slots:
            self._allocate(self._store, max(slots, min(2 * self.slots, self._limit)))

    @torch.inference_mode()
    def keep(self, kept: Sequence[int]) -> None:
        """Commit scratch rows `kept` (slots, in context order) behind the committed ones; all others are dropped."""
        if list(kept) != list(range(self.length, self.length + len(kept))):
            index = torch.tensor(kept, dtype=torch.int64, device=self._store.device)
            self._store[:, :, :, self.length : self.length + len(kept)] = self._store.index_select(3, index)
        self.length += len(kept)

    @torch.inference_mode()
    def fork(self) -> "SequenceCache":
        """An independent copy of the committed rows."""
        copy = object.__new__(SequenceCache)
        copy._limit, copy._shape, copy._head_dim, copy.length = self._limit, self._shape, self._head_dim, self.length
        copy._allocate(self._store[:, :, :, : self.length], max(self.length, _FIRST_SLOTS))
        return copy

    @torch.inference_mode()
    def _allocate(self, rows: Tensor, slots: int) -> None:
        # zeros, not empty: masked scores of never-written slots must be finite, or 0 · NaN would reach the output
        store = torch.zeros((*self._shape, slots, self._head_dim), dtype=rows.dtype, device=rows.device)
        store[:, :, :, : rows.shape[3]] = rows
        self._store = store
        self._layers = list(store.unbind(0))
