"""How the tests of this room grow a draft over laws that they write down."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from lope.core.budget import UNLIMITED, Budget
from lope.core.chance import KeyedChance
from lope.core.draft import Draft
from lope.core.prompt import Path
from lope.core.protocols import Laws
from lope.core.rows import Rows

Row = Callable[[Path], Sequence[float]]


@pytest.fixture
def grow() -> Callable[..., Draft]:
    """grow(shape, row): `row` maps the words of a path to probabilities, or with greedy=True to logits."""

    def grown(
        shape: Any,
        row: Row,
        *,
        seed: int = 0,
        greedy: bool = False,
        nodes: int = UNLIMITED,
        depth: int = UNLIMITED,
        chance: Any = None,
        last: Callable[[Path], bool] = lambda words: False,
    ) -> Draft:
        growth = shape.start(Budget(nodes, depth), chance or KeyedChance(seed, 0, 0), greedy, 7)
        while growth.frontier:
            frontier = growth.frontier
            words = [growth.tree.words(node) for node in frontier]
            values = torch.tensor([list(row(path)) for path in words], dtype=torch.float64)
            rows = Rows(values, None, values.shape[1], float("-inf") if greedy else 0.0)
            growth.grow(Laws(frontier, rows, (1.0,) * len(frontier)), [last(path) for path in words])
        return growth.draft()

    return grown
