"""+2 after a draft accepted whole, -1 otherwise, as in transformers; nothing from rounds that say nothing."""

import dataclasses

import pytest

from lope.core.budget import UNLIMITED, Budget, Round, Situation, Times
from lope.core.errors import SettingError
from lope.policies.heuristic import HeuristicPolicy


def played(depth: int, drafted: int, accepted: int) -> Round:
    asked = Budget(UNLIMITED, depth)
    return Round(
        0, asked, asked, tuple(range(-1, drafted - 1)), (0,) * drafted, tuple(range(accepted)), accepted + 1,
        cut=False, prompt=False, requests=1, rows=drafted + 1, times=Times(0.0, 0.0, 0.0, 0.0),
    )  # fmt: skip


def depth_after(record: Round, policy: HeuristicPolicy = HeuristicPolicy()) -> int:  # noqa: B008
    return policy.choose([Situation(0, 50, 500, True, (record,))])[0].depth


def test_schedule():
    assert HeuristicPolicy(7).choose([Situation(0, 50, 500, True, ())])[0].depth == 7
    assert depth_after(played(5, 5, 5)) == 7
    assert depth_after(played(5, 5, 4)) == 4
    assert depth_after(played(5, 5, 0)) == 4
    assert depth_after(played(1, 1, 0)) == 1
    assert depth_after(played(40, 40, 40)) == 40
    assert depth_after(played(39, 39, 39)) == 40


def test_a_draft_that_ended_above_its_cap_leaves_it():
    """The shape's wish or a stop rule ended it: a higher cap would have changed nothing."""
    assert depth_after(played(8, 5, 5)) == 8
    assert depth_after(played(8, 5, 2)) == 7


def test_rounds_that_say_nothing_change_nothing():
    record = played(6, 6, 6)
    for silent in (
        dataclasses.replace(record, prompt=True),
        dataclasses.replace(record, cut=True),
        dataclasses.replace(record, granted=Budget(3, 3)),
        dataclasses.replace(record, parents=(), path=(), source=()),
    ):
        assert depth_after(silent) == 6


def test_a_cap_that_was_not_felt_is_no_clamp():
    """The engine may cut UNLIMITED to what the context leaves: a draft that stayed below still counts."""
    record = played(6, 6, 6)
    assert depth_after(dataclasses.replace(record, granted=Budget(900, 6))) == 8
    assert depth_after(dataclasses.replace(record, granted=Budget(6, 6))) == 6


def test_a_tree_counts_its_deepest_node():
    record = dataclasses.replace(played(2, 5, 2), parents=(-1, -1, 0, 0, 1), path=(1, 4))
    assert depth_after(record) == 4


def test_settings_are_checked():
    with pytest.raises(SettingError, match="at least 1"):
        HeuristicPolicy(0)
    with pytest.raises(SettingError, match="max_assistant_tokens must be at least"):
        HeuristicPolicy(10, 5)
