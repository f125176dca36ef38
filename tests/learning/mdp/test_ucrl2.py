"""The optimistic inner problem against a linear program; extended value iteration; the end of an episode."""

import numpy as np
import pytest
from scipy.optimize import linprog

from lope.learning.dirichlet import sample_dirichlet
from lope.learning.mdp import ucrl2
from lope.learning.mdp.average_cost import solve_average_cost
from lope.learning.mdp.experience import Experience
from lope.learning.mdp.riverswim import RiverSwim
from lope.learning.mdp.simulate import MdpRuns
from lope.learning.mdp.ucrl2 import Ucrl2


def smallest_mean(row: np.ndarray, radius: float, values: np.ndarray) -> float:
    """min p.v over probabilities p with |p - row|_1 <= radius, as a linear program in (p, |p - row|)."""
    size = len(row)
    eye = np.eye(size)
    upper = np.block([[eye, -eye], [-eye, -eye], [np.zeros((1, size)), np.ones((1, size))]])
    limits = np.concatenate([row, -row, [radius]])
    total = np.concatenate([np.ones(size), np.zeros(size)])[None]
    solved = linprog(np.concatenate([values, np.zeros(size)]), A_ub=upper, b_ub=limits, A_eq=total, b_eq=[1.0])
    return float(solved.fun)


def check_inner(optimistic) -> None:
    stream = np.random.default_rng(0)
    rows = sample_dirichlet(np.full((5, 4, 2, 4), 0.5), stream)
    radius, values = stream.uniform(0, 1.5, size=(5, 4, 2)), stream.uniform(size=(5, 4))
    found = optimistic(rows, radius, values)
    for run, state, action in np.ndindex(5, 4, 2):
        exact = smallest_mean(rows[run, state, action], radius[run, state, action], values[run])
        assert found[run, state, action] == pytest.approx(exact, abs=1e-7)


def test_the_optimistic_mean_is_the_linear_programs() -> None:
    check_inner(ucrl2._optimistic_mean)


def test_wrong_optimism_is_noticed() -> None:
    with pytest.raises(AssertionError):  # the whole radius instead of half of it
        check_inner(lambda rows, radius, values: ucrl2._optimistic_mean(rows, 2 * radius, values))
    with pytest.raises(AssertionError):  # pessimism
        check_inner(lambda rows, radius, values: -ucrl2._optimistic_mean(rows, radius, -values))


def test_a_pair_never_seen_may_lead_anywhere() -> None:
    values = np.array([[0.3, 0.1, 0.8]])
    free = ucrl2._optimistic_mean(np.zeros((1, 3, 1, 3)), np.full((1, 3, 1), 9.0), values)
    assert free == pytest.approx(np.full((1, 3, 1), 0.1))


def test_without_uncertainty_it_is_the_average_cost_optimum() -> None:
    stream = np.random.default_rng(4)
    rows, costs = sample_dirichlet(np.full((9, 4, 3, 4), 1.0), stream), stream.uniform(size=(9, 4, 3))
    found = ucrl2._extended_value_iteration(rows, np.zeros((9, 4, 3)), costs, np.full(9, 1e-10))
    assert np.array_equal(found, solve_average_cost(rows, costs).policy)


def test_an_episode_ends_when_a_pair_has_doubled() -> None:
    runs = MdpRuns([RiverSwim().draw(0)], [0], 400, np.array([400]))
    while runs.unfinished.size:
        before = runs._visits.copy()
        runs.episode(Ucrl2())
        played = runs._visits - before
        if runs.unfinished.size:
            assert (played >= np.maximum(1, before)).any()
            # the pair that ended it did so at once: no pair is past its end
            assert (played <= np.maximum(1, before)).all()


def test_unknown_costs_are_at_least_zero_and_below_what_was_seen() -> None:
    experience = Experience(
        times=np.array([100]),
        visits=np.array([[[50, 0]]]),
        moves=np.zeros((1, 1, 2, 1)),
        cost_sums=np.array([[[40.0, 0.0]]]),
        costs=None,
        cost_noise=0.1,
        previous=np.zeros(1, dtype=np.int64),
    )
    lowest = Ucrl2()._lowest_costs(experience, np.maximum(1.0, experience.visits))
    radius = np.sqrt(7 * np.log(2 * 1 * 2 * 100 / 0.05) / (2 * 50))
    assert lowest[0, 0] == pytest.approx([0.8 - 0.2 * radius, 0.0])
