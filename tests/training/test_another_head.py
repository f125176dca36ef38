"""A head of other tokens: rows that are there stay bit for bit, others lie where a linear map says."""

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from lope.training.another_head import with_head_of

VOCABULARY, HIDDEN, WIDTH = 400, 24, 16


@pytest.fixture
def embedding() -> Tensor:
    return torch.randn(VOCABULARY, HIDDEN, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def tensors(embedding: Tensor) -> Mapping[str, Tensor]:
    """A drafter whose head is a linear function of the embedding, with a little of its own."""
    chance = torch.Generator().manual_seed(1)
    kept = torch.randperm(VOCABULARY, generator=chance)[:200].sort().values
    rows = embedding[kept] @ torch.randn(HIDDEN, WIDTH, generator=chance)
    rows += 0.05 * torch.randn(rows.shape, generator=chance)
    return {"kept": kept, "lm_head.weight": rows, "norm.weight": torch.ones(WIDTH)}


def test_the_same_tokens_change_nothing(tensors: Mapping[str, Tensor], embedding: Tensor) -> None:
    found = with_head_of(tensors["kept"], tensors, embedding)
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


def test_rows_that_are_there_stay_and_new_ones_lie_where_the_map_says(
    tensors: Mapping[str, Tensor], embedding: Tensor
) -> None:
    kept = torch.arange(0, VOCABULARY, 2)
    found = with_head_of(kept, tensors, embedding)
    assert torch.equal(found["kept"], kept)
    assert torch.equal(found["norm.weight"], tensors["norm.weight"])
    had = torch.isin(kept, tensors["kept"])
    assert 0 < int(had.sum()) < len(kept)
    own = tensors["lm_head.weight"][torch.isin(tensors["kept"], kept)]
    assert torch.equal(found["lm_head.weight"][had], own)
    linear, *_ = torch.linalg.lstsq(embedding[tensors["kept"]], tensors["lm_head.weight"])
    expected = embedding[kept[~had]] @ linear
    off = (found["lm_head.weight"][~had] - expected).square().mean() / expected.square().mean()
    assert off < 0.01


def test_an_embedding_in_bfloat16_serves(tensors: Mapping[str, Tensor], embedding: Tensor) -> None:
    found = with_head_of(torch.arange(VOCABULARY), tensors, embedding.bfloat16())
    assert found["lm_head.weight"].dtype == torch.float32
    assert torch.equal(found["lm_head.weight"][tensors["kept"]], tensors["lm_head.weight"])
    assert bool(found["lm_head.weight"].isfinite().all())
