"""Codes of a GGUF file: the very numbers that gguf makes of them."""

import gguf
import numpy as np
import pytest
import torch

from lope.models.gguf_codes import CODED, coded


@pytest.mark.parametrize("kind", CODED, ids=lambda kind: kind.name)
def test_numbers_are_those_of_gguf(kind: gguf.GGMLQuantizationType) -> None:
    numbers = np.random.default_rng(0).normal(size=(24, 96)).astype(np.float32)
    if kind == gguf.GGMLQuantizationType.Q4_1:
        numbers += 3  # a minimum that matters
    data = gguf.quantize(numbers, kind)
    found = coded(data.ravel(), kind, 24, 96)
    assert torch.equal(found.decoded(), torch.from_numpy(gguf.dequantize(data, kind)))
    assert float((found.decoded() - torch.from_numpy(numbers)).abs().max()) < 0.5


def test_rows_keep_their_own_codes() -> None:
    numbers = np.random.default_rng(1).normal(size=(6, 64)).astype(np.float32)
    found = coded(gguf.quantize(numbers, CODED[0]).ravel(), CODED[0], 6, 64)
    order = torch.tensor([3, 1, 0, 5, 4, 2])
    assert torch.equal(found.reordered(lambda x: x[order]).decoded(), found.decoded()[order])
