"""Codes of a GGUF file: the very numbers that gguf makes of them."""

import gguf
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from lope.models.gguf_codes import CODED, coded

ROWS, COLUMNS = 6, 768


def blocks(kind: gguf.GGMLQuantizationType, seed: int = 0) -> NDArray[np.uint8]:
    """Random bytes, but for the float16 in them, which are ordinary numbers."""
    generator = np.random.default_rng(seed)
    numbers, width = gguf.GGML_QUANT_SIZES[kind]
    made = generator.integers(0, 256, size=(ROWS * COLUMNS // numbers, width), dtype=np.uint8)
    name = kind.name
    places = (208,) if name == "Q6_K" else (0,) if name in ("Q4_0", "Q8_0") else (0, 2)
    for at in places:
        halves = generator.normal(size=len(made)).astype(np.float16)
        made[:, at : at + 2] = halves.view(np.uint8).reshape(-1, 2)
    return made


@pytest.mark.parametrize("kind", CODED, ids=lambda kind: kind.name)
def test_numbers_are_those_of_gguf(kind: gguf.GGMLQuantizationType) -> None:
    data = blocks(kind)
    found = coded(data.ravel(), kind, ROWS, COLUMNS)
    expected = torch.from_numpy(gguf.dequantize(data, kind).reshape(ROWS, COLUMNS))
    assert torch.equal(found.decoded(), expected)
    assert found.group == (16 if kind.name == "Q6_K" else 32)
    assert not torch.equal(coded(blocks(kind, 1).ravel(), kind, ROWS, COLUMNS).decoded(), expected)


@pytest.mark.parametrize("kind", CODED, ids=lambda kind: kind.name)
def test_rows_keep_their_own_codes(kind: gguf.GGMLQuantizationType) -> None:
    found = coded(blocks(kind).ravel(), kind, ROWS, COLUMNS)
    order = torch.tensor([3, 1, 0, 5, 4, 2])
    assert torch.equal(found.reordered(lambda x: x[order]).decoded(), found.decoded()[order])
