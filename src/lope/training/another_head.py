"""Other tokens for the head of a drafter that has learned already: rows that it has stay, new ones are guessed.

What a drafter has learned of a token's row is mostly where its target has put the token: a linear map from the target's
embedding to the rows that are there, by ridge regression, says where the others belong. They then learn like any row.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

_HEAD = "lm_head.weight"
# of the mean square of the embedding's directions: those that the rows say little about stay small
_RIDGE = 0.01


def with_head_of(kept: Tensor, tensors: Mapping[str, Tensor], embedding: Tensor) -> dict[str, Tensor]:
    """The tensors of a drafter folder with a head of these tokens.

    kept: int64 [K], ascending. tensors: its own `kept` [J] and head [J, w] among them. embedding [V, d]: the target's.
    """
    before, rows = tensors["kept"], tensors[_HEAD]
    place = torch.searchsorted(before, kept).clamp(max=len(before) - 1)
    head, new = rows[place], before[place] != kept
    if bool(new.any()):
        there = embedding[before].double()
        square = there.T @ there
        square.diagonal().add_(_RIDGE * square.diagonal().mean())
        mapped = embedding[kept[new]].double() @ torch.linalg.solve(square, there.T @ rows.double())
        head[new] = mapped.to(head.dtype)
    return {**tensors, "kept": kept, _HEAD: head}
