"""Means, standard errors and checkpoints."""

import numpy as np
import pytest

from lope.core.errors import LopeError
from lope.learning.trials import Trials, checkpoints, join


def test_mean_and_standard_error_by_hand() -> None:
    trials = Trials(np.array([[1.0, 2.0], [3.0, 6.0]]), np.zeros(2), np.zeros(2, dtype=np.int64))
    assert trials.mean == pytest.approx([2.0, 4.0])
    assert trials.stderr == pytest.approx([1.0, 2.0])  # sd sqrt(2) and sqrt(8), over sqrt(2)


def test_one_run_has_no_standard_error() -> None:
    assert np.isnan(Trials(np.ones((1, 2)), np.zeros(1), np.zeros(1, dtype=np.int64)).stderr).all()


def test_a_lost_run_makes_the_mean_infinite_without_a_warning() -> None:
    trials = Trials(np.array([[1.0], [np.inf]]), np.zeros(2), np.zeros(2, dtype=np.int64))
    assert trials.mean == [np.inf]
    assert np.isnan(trials.stderr).all()


@pytest.mark.parametrize(("steps", "count"), [(1, 100), (7, 100), (100, 100), (50_000, 100), (1000, 3)])
def test_checkpoints_increase_and_end_with_the_last_step(steps: int, count: int) -> None:
    at = checkpoints(steps, count)
    assert at[0] >= 1
    assert at[-1] == steps
    assert (np.diff(at) > 0).all()
    assert len(at) == min(steps, count)


def test_no_steps_is_an_error() -> None:
    with pytest.raises(LopeError, match="steps must be at least 1"):
        checkpoints(0)


def test_join_keeps_the_order() -> None:
    parts = [Trials(np.full((1, 1), value), np.zeros(1), np.zeros(1, dtype=np.int64)) for value in (3.0, 1.0)]
    assert join(parts).regret[:, 0].tolist() == [3.0, 1.0]
