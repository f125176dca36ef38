"""Linear layers: weights packed once by oneDNN on a CPU, plain tensors elsewhere.

A packed layer costs nearly the same for one row and for a few, and on most CPUs gives each row the same bits whatever
else is in the pass (`RowProbe` asks, where it is relied on). torch.compile was tried and was no faster on CPU.
"""

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

INVARIANT_ROWS = 32
_HINT_ROWS = 16


class Linear(Protocol):
    """x [r, in] -> x Wᵀ + b (+ residual) [r, out]."""

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Apply; `residual` [r, out] is added in the same kernel where the backend can."""


class PackedLinear:
    """A weight in oneDNN's own blocked layout. The original tensor is not kept. kind: (out, in, has a bias)."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.kind = (weight.shape[0], weight.shape[1], bias is not None)
        self.dtype = weight.dtype
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), _HINT_ROWS)
        self._bias = bias

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Apply, the residual fused into the kernel."""
        if residual is None:
            plain: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "none", [], "")
            return plain
        added: Tensor = torch.ops.mkldnn._linear_pointwise.binary(x, residual, self._weight, self._bias, "add")
        return added


class DenseLinear:
    """A weight as a plain tensor."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._weight = weight
        self._bias = bias

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Apply."""
        out = F.linear(x, self._weight, self._bias)
        return out if residual is None else out + residual


class BlockedLinear:
    """Runs a packed layer on at most INVARIANT_ROWS rows at a time: a row's bits do not depend on their number.

    fewest: a pass of fewer rows runs with rows of zeros beside them, where a single row takes another kernel.
    """

    def __init__(self, inner: Linear, fewest: int = 1) -> None:
        self._inner = inner
        self._fewest = fewest

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Apply block by block."""
        if x.shape[0] <= INVARIANT_ROWS:
            return self._block(x, residual)
        blocks = x.split(INVARIANT_ROWS)
        beside = (None,) * len(blocks) if residual is None else residual.split(INVARIANT_ROWS)
        return torch.cat([self._block(block, add) for block, add in zip(blocks, beside, strict=True)])

    def _block(self, x: Tensor, residual: Tensor | None) -> Tensor:
        rows = x.shape[0]
        if rows >= self._fewest:
            return self._inner(x, residual)
        missing = (0, 0, 0, self._fewest - rows)
        beside = None if residual is None else F.pad(residual, missing)
        return self._inner(F.pad(x, missing), beside)[:rows]


def can_pack(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether oneDNN packs weights of this dtype on this device."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return dtype == torch.float32


def has_bfloat16() -> bool:
    """Whether the CPU has instructions for bfloat16; one with AVX-512 alone packs it too, and emulates it."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def pack(weight: Tensor, bias: Tensor | None = None) -> Linear:
    """The fastest layer for this weight [out, in] where it lies."""
    packed = can_pack(weight.dtype, weight.device)
    return PackedLinear(weight, bias) if packed else DenseLinear(weight, bias)
