"""The largest probability against the threshold."""

import pytest
import torch

from lope.core.errors import SettingError
from lope.core.protocols import Laws
from lope.core.rows import Rows
from lope.stops.max_confidence import MaxConfidenceStop


def test_threshold_is_compared_with_the_largest_probability():
    rows = Rows(torch.tensor([[0.79, 0.21], [0.81, 0.19], [0.5, 0.5]]), None, 2, 0.0)
    answer = MaxConfidenceStop(0.8).should_stop(Laws((0, 1, 2), rows, (1.0,) * 3), [()] * 3)
    assert [stop for stop, _ in answer] == [True, False, True]


def test_logits_left_out_still_count():
    """Two of many logits are held; `total` says what the whole row weighs."""
    rows = Rows(torch.tensor([[2.0, 1.0]]), torch.tensor([[4, 9]]), 100, float("-inf"), torch.tensor([4.0]))
    stop = MaxConfidenceStop(0.2)
    assert stop.should_stop(Laws((0,), rows, (1.0,)), [()]) == [(True, ())]  # exp(2 - 4) = 0.14


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan")])
def test_threshold_is_checked(threshold):
    with pytest.raises(SettingError, match="threshold must lie between 0 and 1"):
        MaxConfidenceStop(threshold)
