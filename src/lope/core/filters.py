"""Temperature, top-k, top-p, min-p: in the order and with the meaning of transformers' logits warpers.

None of them sorts the vocabulary: top-k and top-p look at the largest logits only, and at more of them until they
provably hold all that is kept (sorting 49,152 logits costs more than a forward pass of a small model). What they return
is narrow, so that everything after them is cheap.
"""

import math

import torch
from torch import Tensor

_FIRST_LOOK = 128


def top_k(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of each row; ties with the last one stay (Fan et al. 2018).

    values: [r, C] logits, -inf where a token is out. Returns (columns [r, m] by descending logit, kept [r, m]).
    """
    width = values.shape[-1]
    look = min(count + 1, width)
    while True:
        top = torch.topk(values, look, dim=-1)
        last = top.values[:, min(count, width) - 1, None]
        if look == width or not bool(((top.values[:, -1:] == last) & torch.isfinite(last)).any()):
            return top.indices, top.values >= last
        look = min(4 * look, width)


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
