"""Writes a safetensors file tensor by tensor, so that a model need not fit into memory twice.

Format: 8 bytes of header length, a JSON header, the tensors' bytes in the header's order.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

_NAMES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}


def write_safetensors(
    path: Path, tensors: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]], dtype: torch.dtype
) -> None:
    """Write the tensors named in `shapes`, converted to `dtype`, and flush them to the disk."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + num_bytes({name: shape}, dtype)
        header[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, shape in shapes.items():
            tensor = tensors[name].to(dtype).contiguous()
            assert tuple(tensor.shape) == tuple(shape), f"{name}: {tuple(tensor.shape)} is not {shape}"
            file.write(tensor.view(torch.uint8).numpy().data)
        file.flush()
        os.fsync(file.fileno())


def num_bytes(shapes: Mapping[str, tuple[int, ...]], dtype: torch.dtype) -> int:
    """How many bytes tensors of these shapes take."""
    return sum(torch.Size(shape).numel() for shape in shapes.values()) * dtype.itemsize
