"""Temperature, top-k, top-p, min-p: in the order and with the meaning of transformers' logits warpers.

None of them sorts the vocabulary: top-p looks at the largest logits only, and at more of them until they provably hold
all that it keeps (sorting 49,152 logits costs more than a forward pass of a small model).
"""

import math

import torch
from torch import Tensor

_FIRST_LOOK = 128


def top_k(values: Tensor, count: int) -> Tensor:
    """Mask [r, C] of the `count` largest of each row; ties with the last one stay."""
    if count >= values.shape[-1]:
        return torch.ones_like(values, dtype=torch.bool)
    return values >= torch.topk(values, count, dim=-1).values[:, -1:]


def candidates(values: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """The smallest set of most probable tokens whose mass reaches `top_p` (Holtzman et al. 2020), for each row.

    values: [r, C] logits, -inf where a token is out. Returns (columns [r, m] by descending logit, kept [r, m]).
    """
    width = values.shape[-1]
    total = torch.logsumexp(values, dim=-1, keepdim=True)
    look = min(_FIRST_LOOK, width)
    while True:
        top = torch.topk(values, look, dim=-1)
        probability = (top.values - total).exp()
        before = probability.cumsum(dim=-1) - probability
        if look == width or bool((before[:, -1] + probability[:, -1] >= top_p).all()):
            kept = (before < top_p) & torch.isfinite(top.values)
            kept[:, 0] = True
            return top.indices, kept
        look = min(4 * look, width)


def min_p(values: Tensor, ratio: float) -> Tensor:
    """Mask [r, C] of tokens at least `ratio` times as probable as the row's best (Nguyen et al. 2024)."""
    return values >= values.amax(dim=-1, keepdim=True) + math.log(ratio)
