"""What a process must be, and the environments' published values."""

import json

import numpy as np
import pytest

from lope.core.errors import LopeError
from lope.learning.mdp.average_cost import optimal_average_cost
from lope.learning.mdp.mdp_file import MdpFile
from lope.learning.mdp.model import MDP, stack
from lope.learning.mdp.random_mdp import RandomMDP
from lope.learning.mdp.riverswim import RiverSwim

GOOD = np.full((2, 1, 2), 0.5)


@pytest.mark.parametrize(
    ("transitions", "costs", "message"),
    [
        (np.array([[[0.5, 0.5]], [[0.5, 0.4]]]), np.zeros((2, 1)), "state 1, action 0 has .* do not sum to one: 0.9"),
        (np.array([[[1.5, -0.5]], [[0.5, 0.5]]]), np.zeros((2, 1)), "state 0, action 0 has a negative"),
        (np.array([[[np.nan, 0.5]], [[0.5, 0.5]]]), np.zeros((2, 1)), "NaN"),
        (GOOD, np.array([[0.0], [1.5]]), "state 1, action 0 has a cost outside"),
        (GOOD, np.array([[0.0], [np.nan]]), "NaN"),
        (GOOD, np.zeros((1, 2)), "costs must have shape"),
        (np.full((2, 2), 0.5), np.zeros((2, 1)), "transitions must have shape"),
        (np.zeros((0, 0, 0)), np.zeros((0, 0)), "transitions must have shape"),
        ([[[0.5, 0.5]], [[1.0]]], np.zeros((2, 1)), "rectangular"),
        ([[["x", "y"]]], np.zeros((1, 1)), "rectangular"),
    ],
)
def test_bad_processes_are_named(transitions, costs, message: str) -> None:
    with pytest.raises(LopeError, match=message):
        MDP(transitions, costs)


def test_sizes_that_differ_do_not_stack() -> None:
    with pytest.raises(LopeError, match="one size"):
        stack([RiverSwim().draw(0), RiverSwim(states=4).draw(0)])


def test_riverswim_in_the_authors_form() -> None:
    # mgagrani/TSDE and our notes: J* = 0.7770642201834865, always right.
    solved = optimal_average_cost(RiverSwim().draw(0))
    assert solved.gain[0] == pytest.approx(0.7770642201834865, abs=1e-12)
    assert solved.policy[0].tolist() == [1] * 6


def test_riverswim_ends_are_as_published() -> None:
    process = RiverSwim().draw(0)
    assert process.transitions[0, 1].tolist() == [0.7, 0.3, 0, 0, 0, 0]
    assert process.transitions[3, 1].tolist() == [0, 0, 0.1, 0.6, 0.3, 0]
    assert process.transitions[5, 1].tolist() == [0, 0, 0, 0, 0.7, 0.3]
    assert process.costs.tolist() == [[0.8, 1], [1, 1], [1, 1], [1, 1], [1, 1], [1, 0]]


def test_riverswim_in_the_other_form_has_another_optimum() -> None:
    # The chain of "always right" is birth-death: its stationary law in closed form (right / left rates).
    rates = [0.6 / 0.05, *[0.35 / 0.05] * 3, 0.35 / 0.4]
    weights = np.cumprod([1.0, *rates])
    reward = 0.6 * 0 + weights[-1] / weights.sum()
    assert optimal_average_cost(RiverSwim(variant="ucrl").draw(0)).gain[0] == pytest.approx(1 - reward, abs=1e-12)


def test_riverswim_names_its_variants() -> None:
    with pytest.raises(LopeError, match="tsde, ucrl"):
        RiverSwim(variant="osband")


def test_random_processes_differ_by_seed_only() -> None:
    assert np.array_equal(RandomMDP().draw(3).transitions, RandomMDP().draw(3).transitions)
    assert not np.array_equal(RandomMDP().draw(3).transitions, RandomMDP().draw(4).transitions)


def test_a_file_of_costs_and_one_of_rewards(tmp_path) -> None:
    path = tmp_path / "process.json"
    path.write_text(json.dumps({"transitions": GOOD.tolist(), "rewards": [[0.25], [1.0]]}))
    assert MdpFile(str(path)).draw(0).costs.tolist() == [[0.75], [0.0]]
    path.write_text(json.dumps({"transitions": GOOD.tolist(), "costs": [[0.25], [1.0]]}))
    assert MdpFile(str(path)).draw(0).costs.tolist() == [[0.25], [1.0]]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"transitions": [[[1]]], "costs": [[0]], "rewards": [[0]]}', "{nan"])
def test_a_file_of_something_else_is_named(tmp_path, text: str) -> None:
    path = tmp_path / "process.json"
    path.write_text(text)
    with pytest.raises(LopeError, match=r"process\.json"):
        MdpFile(str(path)).draw(0)


def test_no_file() -> None:
    with pytest.raises(LopeError, match="there is no file"):
        MdpFile("/nowhere/process.json").draw(0)
