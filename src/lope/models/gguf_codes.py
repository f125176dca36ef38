"""The integers of a GGUF file's blocks, where they are simple: 32 numbers that share a scale, and a minimum or none."""

import gguf
import numpy as np
import torch
from numpy.typing import NDArray

from lope.models.coded_weight import GROUP, CodedWeight

_Q4_0, _Q4_1, _Q8_0 = (getattr(gguf.GGMLQuantizationType, name) for name in ("Q4_0", "Q4_1", "Q8_0"))
CODED = (_Q4_0, _Q4_1, _Q8_0)


def coded(data: NDArray[np.uint8], kind: gguf.GGMLQuantizationType, rows: int, columns: int) -> CodedWeight:
    """Blocks as stored -> the same numbers. kind: one of CODED.

    ggml's blocks: float16 scale, with Q4_1 a float16 minimum, then the codes: four bits hold number j of a block low,
    number j + 16 high. Q4_0 means scale · (code − 8), which is a minimum of −8 · scale.
    """
    width = gguf.GGML_QUANT_SIZES[kind][1]
    blocks = torch.from_numpy(np.array(data)).view(rows, columns // GROUP, width)
    scales = _float16(blocks[:, :, :2])
    if kind == _Q8_0:
        return CodedWeight(blocks[:, :, 2:].contiguous().view(torch.int8).view(rows, columns), scales)
    packed = blocks[:, :, -GROUP // 2 :]
    codes = torch.cat([packed & 15, packed >> 4], dim=-1).view(rows, columns)
    return CodedWeight(codes, scales, scales * -8 if kind == _Q4_0 else _float16(blocks[:, :, 2:4]))


def _float16(pairs: torch.Tensor) -> torch.Tensor:
    """[rows, groups, 2] bytes -> [rows, groups]."""
    return pairs.contiguous().view(torch.float16).squeeze(-1)
