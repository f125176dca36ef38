"""A chain is an ancestral sample: joint law of its tokens."""

from collections import Counter
from itertools import product

import pytest
import torch

from lope.core.draft import Draw
from lope.core.errors import SettingError
from lope.core.statistics import chi_square
from lope.shapes.chain import ChainShape

ROWS = {(): [0.5, 0.3, 0.2], (0,): [0.1, 0.6, 0.3], (1,): [0.2, 0.2, 0.6], (2,): [0.8, 0.1, 0.1]}


def test_tokens_have_the_joint_law(grow):
    counts = Counter(grow(ChainShape(2), ROWS.__getitem__, seed=seed).tokens for seed in range(2000))
    paths = list(product(range(3), repeat=2))
    law = torch.tensor([ROWS[()][one] * ROWS[one,][two] for one, two in paths])
    assert chi_square(torch.tensor([counts[path] for path in paths]), law)[1] > 1e-3


def test_laws_stand_beside_their_parents(grow):
    draft = grow(ChainShape(2), ROWS.__getitem__)
    assert draft.draws == (Draw.ONLY, Draw.ONLY)
    assert draft.law_of == (0, 1, -1)
    assert draft.laws.dense(1).tolist() == ROWS[draft.tokens[:1]]


def test_depth_is_checked():
    with pytest.raises(SettingError, match="depth must be at least 1, not 0"):
        ChainShape(0)
