"""The integers of a GGUF file's blocks, and the scales and minima that make numbers of them.

Facts about ggml's blocks: four bits hold two codes of a byte that stand half a run apart, the first one low. Q4_0 means
scale · (code − 8), Q8_0 scale · code, Q4_1 scale · code + minimum, each over 32 numbers. K kinds hold 256 numbers in
sub-blocks of 32 (Q4_K, Q5_K) or 16 (Q6_K), whose scales (and minima) are small integers times a float16 of the block.
"""

from collections.abc import Callable

import gguf
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lope.models.coded_weight import CodedWeight

_Kind = gguf.GGMLQuantizationType


def coded(data: NDArray[np.uint8], kind: gguf.GGMLQuantizationType, rows: int, columns: int) -> CodedWeight:
    """Blocks as stored -> the same numbers. kind: one of CODED."""
    numbers, width = gguf.GGML_QUANT_SIZES[kind]
    blocks = torch.from_numpy(np.array(data)).view(rows * (columns // numbers), width)
    codes, scales, minima = CODED[kind](blocks)
    return CodedWeight(
        codes.reshape(rows, columns), scales.reshape(rows, -1), None if minima is None else minima.reshape(rows, -1)
    )


Parts = tuple[Tensor, Tensor, Tensor | None]


def _q4_0(blocks: Tensor) -> Parts:
    scales = _float16(blocks[:, :2])
    return _halves(blocks[:, 2:]), scales, scales * -8


def _q4_1(blocks: Tensor) -> Parts:
    return _halves(blocks[:, 4:]), _float16(blocks[:, :2]), _float16(blocks[:, 2:4])


def _q8_0(blocks: Tensor) -> Parts:
    return blocks[:, 2:].contiguous().view(torch.int8), _float16(blocks[:, :2]), None


def _q4_k(blocks: Tensor) -> Parts:
    return _halves(blocks[:, 16:].reshape(-1, 32)), *_k_factors(blocks)


def _q5_k(blocks: Tensor) -> Parts:
    low = _halves(blocks[:, 48:].reshape(-1, 32)).view(-1, 8, 32)
    fifth = (blocks[:, 16:48, None] >> torch.arange(8, dtype=torch.uint8)) & 1  # bit j belongs to sub-block j
    return (low | (fifth.transpose(1, 2) << 4)).view(torch.int8), *_k_factors(blocks)


def _q6_k(blocks: Tensor) -> Parts:
    low = blocks[:, :128].reshape(-1, 2, 1, 64) >> torch.tensor([0, 4], dtype=torch.uint8)[:, None] & 15
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> torch.tensor([0, 2, 4, 6], dtype=torch.uint8)[:, None] & 3
    codes = low.reshape(-1, 2, 4, 32) | (high << 4)
    scales = blocks[:, 192:208].contiguous().view(torch.int8).float() * _float16(blocks[:, 208:]).float()
    return codes.view(torch.int8) - 32, scales, None


def _k_factors(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Scales and minima float32 [blocks, 8]: six bits each, in twelve bytes after the two float16."""
    whole, packed = _float16(blocks[:, :4]).float(), blocks[:, 4:16]
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    steps = torch.cat([first & 63, (third & 15) | (first >> 6 << 4)], dim=1)
    below = torch.cat([second & 63, (third >> 4) | (second >> 6 << 4)], dim=1)
    return steps.float() * whole[:, :1], -(below.float() * whole[:, 1:])


def _halves(packed: Tensor) -> Tensor:
    """[n, bytes] -> [n, 2 · bytes] codes: the low halves, then the high ones."""
    return torch.cat([packed & 15, packed >> 4], dim=1)


def _float16(pairs: Tensor) -> Tensor:
    """[n, 2 · k] bytes -> [n, k]."""
    return pairs.contiguous().view(torch.float16)


CODED: dict[gguf.GGMLQuantizationType, Callable[[Tensor], Parts]] = {
    _Kind.Q4_0: _q4_0,
    _Kind.Q4_1: _q4_1,
    _Kind.Q8_0: _q8_0,
    _Kind.Q4_K: _q4_k,
    _Kind.Q5_K: _q5_k,
    _Kind.Q6_K: _q6_k,
}
