"""The same budget every round; None leaves it to the shape."""

import pytest

from lope.core.budget import UNLIMITED, Budget, Situation
from lope.core.errors import SettingError
from lope.policies import POLICIES
from lope.policies.fixed import FixedPolicy

HERE = Situation(0, 10, 100, True, ())


def test_what_is_named_is_asked():
    assert FixedPolicy().choose([HERE]) == [Budget(UNLIMITED, UNLIMITED)]
    assert POLICIES.make("fixed:nodes=12").choose([HERE, HERE]) == [Budget(12, UNLIMITED)] * 2
    assert POLICIES.make("fixed:depth=3,nodes=none").choose([HERE]) == [Budget(UNLIMITED, 3)]
    assert FixedPolicy(0).choose([HERE])[0].nodes == 0


def test_settings_are_checked():
    with pytest.raises(SettingError, match="nodes must be at least 0, not -1"):
        FixedPolicy(nodes=-1)
