"""Who sees whom in a packed pass, as the 4-D mask that transformers adds to attention scores."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lope.models.lean.layout import Layout


def visible(layout: Layout) -> NDArray[np.bool_]:
    """[rows, slots]: which slots of its own sequence each row sees: the shared ones before it, and its tree path."""
    first = layout.slots[0]
    assert layout.slots == tuple(range(first, first + layout.rows)), "a pass appends its rows to the cache"
    shared = np.minimum(layout.lengths, layout.context)
    seen: NDArray[np.bool_] = np.arange(first + layout.rows)[None, :] < shared[:, None]
    for row, path in enumerate(layout.ancestors, start=layout.chain):
        seen[row, list(path)] = True
    return seen


def packed_mask(layouts: Sequence[Layout], dtype: torch.dtype, device: torch.device) -> Tensor:
    """[1, 1, rows, keys]: 0 where a row sees a key, the lowest number of `dtype` elsewhere.

    Keys in cache order: the cached rows of all sequences, one sequence after another, then all rows of the pass.
    """
    cached = [layout.slots[0] for layout in layouts]
    rows = [layout.rows for layout in layouts]
    seen = np.zeros((sum(rows), sum(cached) + sum(rows)), dtype=np.bool_)
    old, new = 0, 0
    for layout, past, count in zip(layouts, cached, rows, strict=True):
        own = visible(layout)
        seen[new : new + count, old : old + past] = own[:, :past]
        seen[new : new + count, sum(cached) + new : sum(cached) + new + count] = own[:, past:]
        old, new = old + past, new + count
    hidden = torch.from_numpy(~seen).to(device)
    return torch.zeros(hidden.shape, dtype=dtype, device=device).masked_fill(hidden, torch.finfo(dtype).min)[None, None]
