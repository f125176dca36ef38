"""RSD-C: branching by level, first children first, and a chain where every branching is 1."""

from collections import Counter

import pytest

from lope.core.draft import Draw
from lope.core.errors import SettingError
from lope.shapes import SHAPES
from lope.shapes.chain import ChainShape
from lope.shapes.rsd_c import RsdCShape


def flat(path):
    return [0.25] * 4


def test_levels_branch_as_named(grow):
    draft = grow(RsdCShape((3, 2, 1)), flat)
    assert Counter(draft.depths) == {1: 3, 2: 6, 3: 6}
    assert [draft.draws[node] for node in (0, 3, 9)] == [Draw.WITHOUT_REPLACEMENT, Draw.WITHOUT_REPLACEMENT, Draw.ONLY]


def test_all_ones_are_a_chain_token_by_token(grow):
    for seed in range(20):
        one, other = (grow(shape, flat, seed=seed) for shape in (RsdCShape((1, 1, 1)), ChainShape(3)))
        assert (one.tokens, one.parents, one.draws, one.law_of) == (
            other.tokens,
            other.parents,
            other.draws,
            other.law_of,
        )


def test_budget_gives_every_node_its_first_child_before_any_its_second(grow):
    draft = grow(RsdCShape((3, 3)), flat, nodes=7)
    assert draft.parents == (-1, -1, -1, 0, 0, 1, 2)
    assert [draft.draws[node] for node in (3, 5, 6)] == [Draw.WITHOUT_REPLACEMENT, Draw.ONLY, Draw.ONLY]


def test_branching_is_written_with_dashes():
    assert SHAPES.make("rsd_c:branching=4-2-1") == RsdCShape((4, 2, 1))
    assert SHAPES.spell(RsdCShape((4, 2, 1))) == "rsd_c:branching=4-2-1"
    for wrong in ((), (2, 0), (-1,)):
        with pytest.raises(SettingError):
            RsdCShape(wrong)
