"""Independent chains: equal siblings stay apart, what follows a copy hangs under its first."""

import pytest

from lope.core.draft import ROOT, Draw
from lope.core.errors import SettingError
from lope.shapes.independent import IndependentShape


def sure(path):
    return [0.0, 1.0, 0.0]


def test_chains_that_agree_stay_apart_as_copies(grow):
    draft = grow(IndependentShape(3, 2), sure)
    assert draft.tokens == (1,) * 6
    assert draft.parents == (ROOT, ROOT, ROOT, 0, 0, 0)
    assert draft.firsts == (0, 0, 0, 3, 3, 3)
    assert set(draft.draws) == {Draw.INDEPENDENT}
    assert draft.law_of == (0, 1, -1, -1, -1, -1, -1)


def test_chains_that_differ_go_their_own_way(grow):
    for seed in range(30):
        draft = grow(IndependentShape(2, 3), lambda path: [1 / 3] * 3, seed=seed)
        assert len(draft) == 6
        apart = draft.tokens[0] != draft.tokens[1]
        assert (draft.parents[2:4] == (0, 1)) == apart
        assert (draft.draws[2] is Draw.ONLY) == apart


def test_at_temperature_zero_chain_i_starts_at_the_ith_best(grow):
    draft = grow(IndependentShape(3, 2), lambda path: [1.0, 4.0, 2.0, 3.0], greedy=True)
    assert draft.tokens == (1, 3, 2, 1, 1, 1)
    assert draft.parents == (ROOT, ROOT, ROOT, 0, 1, 2)


def test_a_stopped_chain_ends_alone(grow):
    draft = grow(IndependentShape(2, 3), lambda path: [1.0, 4.0, 2.0], greedy=True, last=lambda path: path == (2,))
    assert draft.tokens == (1, 2, 1, 1, 1)
    assert draft.parents == (ROOT, ROOT, 0, 1, 2)


def test_settings_are_checked():
    for wrong in ({"chains": 0}, {"depth": -1}):
        with pytest.raises(SettingError):
            IndependentShape(**wrong)
