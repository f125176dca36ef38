"""What a shape takes at temperature 0: the best tokens of a row, in order, named without chance."""

from collections.abc import Sequence

import torch

from lope.core.prompt import Path
from lope.core.rows import Rows


def best(logits: Rows, counts: Sequence[int]) -> list[Path]:
    """The counts[i] best tokens of row i, best first; forbidden ones (-inf) are never named."""
    width = min(max(counts, default=0), logits.values.shape[1])
    if width == 0:
        return [()] * len(counts)
    if width == 1:
        values, columns = logits.values.max(dim=-1, keepdim=True)
    else:
        values, columns = torch.topk(logits.values, width, dim=-1)
    tokens = columns if logits.ids is None else logits.ids.expand_as(logits.values).gather(-1, columns)
    found = tokens.masked_fill(values == float("-inf"), -1).tolist()
    return [tuple(token for token in row[:count] if token >= 0) for row, count in zip(found, counts, strict=True)]
