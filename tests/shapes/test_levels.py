"""Growing level by level: positions, device-free laws, rows of different widths in one draft."""

from typing import Any

import pytest
import torch

from lope.core.budget import Budget
from lope.core.chance import KeyedChance
from lope.core.protocols import Laws
from lope.core.rows import Rows, stack
from lope.shapes import SHAPES
from lope.shapes.counted import share
from lope.shapes.points import best


class Listening(KeyedChance):
    """Notes the position of every draw."""

    def __init__(self) -> None:
        super().__init__(0, 0, 0)
        self.positions: list[int] = []

    def order(self, weights: Any, ids: Any, count: int, position: int) -> list[int]:
        self.positions.append(position)
        return super().order(weights, ids, count, position)


@pytest.mark.parametrize("name", list(SHAPES))
def test_children_take_the_position_of_their_depth(grow, name):
    """The root's children take `position` (7 here), theirs the next one: noise shared with the target needs it."""
    chance = Listening()
    draft = grow(SHAPES.make(name), lambda path: [0.4, 0.3, 0.2, 0.1], chance=chance)
    assert sorted(set(chance.positions)) == list(range(7, 7 + max(draft.depths)))
    assert chance.positions == sorted(chance.positions)


@pytest.mark.parametrize("name", list(SHAPES))
def test_rows_that_hold_different_tokens_become_one_table(name):
    """A top-p filter holds other columns on every level: tokens, not columns, are what is drawn."""
    laws = [
        Rows(torch.tensor([[0.5, 0.3, 0.2]]), torch.tensor([[7, 2, 5]]), 9, 0.0),
        Rows(torch.tensor([[0.6, 0.4]]), torch.tensor([[8, 0]]), 9, 0.0),
    ]
    growth = SHAPES.make(name).start(Budget(50, 2), KeyedChance(1, 0, 0), False, 0)
    growth.grow(Laws(growth.frontier, laws[0], (1.0,)), [False])
    assert set(growth.tree.tokens) <= {7, 2, 5}
    count = len(growth.frontier)
    growth.grow(Laws(growth.frontier, stack([laws[1]] * count), (1.0,) * count), [False] * count)
    draft = growth.draft()
    deep = [node for node in range(len(draft)) if draft.depths[node] == 2]
    assert {draft.tokens[node] for node in deep} <= {8, 0}
    assert draft.laws.dense(draft.law_of[0]).tolist() == pytest.approx([0, 0, 0.3, 0, 0, 0.2, 0, 0.5, 0])
    below = draft.laws.dense(draft.law_of[draft.parents[deep[0]] + 1])
    assert below.tolist() == pytest.approx([0.4, 0, 0, 0, 0, 0, 0, 0, 0.6])


def test_an_unlimited_budget_leaves_the_shape_its_wish(grow):
    assert [len(grow(SHAPES.make(name), lambda path: [0.125] * 8)) for name in SHAPES] == [5, 15, 16, 8]


def test_share_goes_by_rank():
    assert share([3, 1, 2], 100) == [3, 1, 2]
    assert share([3, 1, 2], 4) == [2, 1, 1]
    assert share([3, 1, 2], 2) == [1, 1, 0]
    assert share([3, 1, 2], 0) == [0, 0, 0]
    assert share([], 5) == []


def test_best_is_ordered_and_never_forbidden():
    infinity = float("-inf")
    logits = Rows(torch.tensor([[1.0, 3.0, 2.0], [infinity, 0.0, infinity]]), None, 3, infinity)
    assert best(logits, [2, 2]) == [(1, 2), (1,)]
    assert best(logits, [1, 0]) == [(1,), ()]
    assert best(logits, [0, 0]) == [(), ()]
    held = Rows(logits.values, torch.tensor([10, 20, 30]), 40, infinity)
    assert best(held, [3, 1]) == [(20, 30, 10), (20,)]
