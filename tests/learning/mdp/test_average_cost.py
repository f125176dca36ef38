"""Policy iteration against all policies, one by one; and against processes on which the plain solve is singular."""

import itertools

import numpy as np
import pytest

from lope.learning.dirichlet import sample_dirichlet
from lope.learning.mdp import average_cost
from lope.learning.mdp.average_cost import optimal_average_cost, solve_average_cost
from lope.learning.mdp.model import MDP


def gains_of_policy(chain: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Average cost from each state: a far-out power of a lazy chain."""
    lazy = (chain + np.eye(len(chain))) / 2  # the same limit, without periods
    return np.linalg.matrix_power(lazy, 2**24) @ costs


def best_gains(transitions: np.ndarray, costs: np.ndarray) -> np.ndarray:
    states = np.arange(len(costs))
    policies = itertools.product(range(costs.shape[1]), repeat=len(costs))
    every = [gains_of_policy(transitions[states, list(p)], costs[states, list(p)]) for p in policies]
    return np.min(every, axis=0)


def random_batch(seed: int, concentration: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    stream = np.random.default_rng(seed)
    transitions = sample_dirichlet(np.full((20, 4, 3, 4), concentration), stream)
    return transitions, stream.uniform(size=(20, 4, 3))


def check_against_all_policies(seed: int) -> None:
    transitions, costs = random_batch(seed)
    solved = solve_average_cost(transitions, costs, restart=1e-9)
    for chain, cost, gain, policy in zip(transitions, costs, solved.gain, solved.policy, strict=True):
        best = best_gains(chain, cost)
        states = np.arange(4)
        assert gain == pytest.approx(best[0], abs=1e-6)
        assert gains_of_policy(chain[states, policy], cost[states, policy]) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_it_finds_the_best_of_all_policies(seed: int) -> None:
    check_against_all_policies(seed)


def test_one_look_ahead_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def cheapest_now(chains, costs, restart):
        return costs[:, 0], np.zeros_like(costs)

    monkeypatch.setattr(average_cost, "_evaluate", cheapest_now)
    with pytest.raises(AssertionError):
        check_against_all_policies(0)


def test_multichain_processes_are_solved_from_every_state() -> None:
    # Two rooms that only a doorway (state 0) leads to; each room has a dear and a cheap action.
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 1] = transitions[0, 1, 2] = 1.0
    transitions[1, :, 1] = transitions[2, :, 2] = 1.0
    costs = np.array([[0.0, 1.0], [0.9, 0.6], [0.3, 0.8]])
    solved = solve_average_cost(transitions[None], costs[None])
    assert solved.policy[0].tolist() == [1, 1, 0]
    assert solved.gain[0] == pytest.approx(0.3, abs=1e-5)


def test_nearly_multichain_draws_are_solved() -> None:
    # Dirichlet(0.001): most entries are below 1e-100, so for float64 these chains fall apart.
    transitions, costs = random_batch(7, concentration=1e-3)
    solved = solve_average_cost(transitions, costs)
    assert np.isfinite(solved.gain).all()
    assert ((solved.gain >= -1e-6) & (solved.gain <= 1 + 1e-6)).all()


def test_a_batch_is_solved_as_its_members_alone() -> None:
    transitions, costs = random_batch(5)
    together = solve_average_cost(transitions, costs)
    for run in range(len(costs)):
        alone = solve_average_cost(transitions[run : run + 1], costs[run : run + 1])
        assert np.array_equal(alone.policy[0], together.policy[run])
        assert alone.gain[0] == together.gain[run]


def test_the_optimum_satisfies_its_own_equation() -> None:
    transitions, costs = random_batch(6)
    for chain, cost in zip(transitions, costs, strict=True):
        solved = optimal_average_cost(MDP(chain, cost))
        ahead = (cost + chain @ solved.values[0]).min(axis=1)
        assert ahead == pytest.approx(solved.gain[0] + solved.values[0], abs=1e-9)
