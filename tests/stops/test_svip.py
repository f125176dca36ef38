"""sqrt(factor · H) against the threshold, H written out."""

import math

import pytest
import torch

from lope.core.errors import SettingError
from lope.core.protocols import Laws
from lope.core.rows import Rows
from lope.stops.svip import SvipStop


@pytest.mark.parametrize("law", [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.7, 0.2, 0.1], [1 / 3] * 3])
def test_entropy_rule(law):
    entropy = -sum(value * math.log(value) for value in law if value)
    rows = Rows(torch.tensor([law]), None, 3, 0.0)
    [(stop, memo)] = SvipStop(0.3, 0.15).should_stop(Laws((0,), rows, (1.0,)), [()])
    assert stop == (math.sqrt(0.15 * entropy) > 0.3)
    assert memo == ()


def test_both_sides_occur():
    rows = Rows(torch.tensor([[0.9, 0.1], [0.5, 0.5]]), None, 2, 0.0)  # H = 0.33 and 0.69; the limit is 0.6
    assert [stop for stop, _ in SvipStop().should_stop(Laws((0, 1), rows, (1.0, 1.0)), [()] * 2)] == [False, True]


@pytest.mark.parametrize("settings", [{"threshold": -1.0}, {"factor": 0.0}, {"factor": float("inf")}])
def test_settings_are_checked(settings):
    with pytest.raises(SettingError):
        SvipStop(**settings)
