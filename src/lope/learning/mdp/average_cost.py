"""Average-cost policy iteration for many processes at once, in a form that survives multichain ones (Howard 1960)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lope.core.errors import RunError
from lope.learning.mdp.model import MDP

RESTART = 1e-6  # a look-ahead of a million steps: far beyond our runs, and float64 keeps ten of sixteen digits
SLACK = 1e-9  # relative to the largest value: ten times what such a solve rounds away, so ties cannot cycle
MOST_SWEEPS = 1000  # policy iteration on S <= 100 takes about ten; hitting this means a fault, not a hard problem


@dataclass(frozen=True, eq=False)
class AverageCost:
    """What the solve found for N processes.

    policy: [N, S], the action to take. gain: [N], the average cost J from state 0. values: [N, S], w, with w[:, 0] = 0.
    """

    policy: NDArray[np.int64]
    gain: NDArray[np.float64]
    values: NDArray[np.float64]


def solve_average_cost(
    transitions: NDArray[np.float64], costs: NDArray[np.float64], *, restart: float = RESTART
) -> AverageCost:
    """Minimise the long-run average cost of N processes: transitions [N, S, A, S], costs [N, S, A].

    Solves J + w(x) = min_a c(x, a) + (1 - restart) sum_y P(y | x, a) w(y) with w(0) = 0 by policy iteration.
    That is the discounted problem with discount 1 - restart written in relative values (w = v - v(0),
    J = restart * v(0)): for a unichain policy the system stays well conditioned as restart goes to 0, and for a
    multichain one, where the plain average-cost system is singular, it is still solvable; its policy is then optimal
    from every state for a look-ahead of 1 / restart steps (Blackwell 1962: for discounts close enough to 1 it is
    gain-optimal), and `gain` is that of state 0. Sampled chains with nearly-zero Dirichlet entries are such cases.
    Raises RunError where policy iteration does not settle.
    """
    runs, states = np.arange(len(costs))[:, None], np.arange(costs.shape[1])[None, :]
    policy = costs.argmin(axis=2)
    for _ in range(MOST_SWEEPS):
        gain, values = _evaluate(transitions[runs, states, policy], costs[runs, states, policy], restart)
        ahead = costs + (1 - restart) * (transitions @ values[:, None, :, None])[..., 0]
        slack = SLACK * (1 + abs(values).max(axis=1, keepdims=True))
        better = ahead[runs, states, policy] - ahead.min(axis=2) > slack
        if not better.any():
            return AverageCost(policy, gain, values)
        policy = np.where(better, ahead.argmin(axis=2), policy)
    raise RunError(f"policy iteration did not settle in {MOST_SWEEPS} sweeps")


def optimal_average_cost(mdp: MDP) -> AverageCost:
    """J*, w* and an optimal policy of a weakly communicating process (N = 1), without the bias of the restart.

    The policy's own equation J + (I - P) w = c has one J where its average cost is the same from every state; least
    squares finds it even where w is not unique.
    """
    policy = solve_average_cost(mdp.transitions[None], mdp.costs[None]).policy
    states = np.arange(mdp.num_states)
    chain = mdp.transitions[states, policy[0]]
    system = np.column_stack([np.ones(mdp.num_states), np.eye(mdp.num_states) - chain])
    solution = np.linalg.lstsq(system, mdp.costs[states, policy[0]], rcond=None)[0]
    return AverageCost(policy, solution[:1], solution[None, 1:] - solution[1])


def _evaluate(
    chains: NDArray[np.float64], costs: NDArray[np.float64], restart: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """J [N] and w [N, S] of fixed policies: chains [N, S, S], costs [N, S]; column 0 carries J because w(0) = 0."""
    system = np.eye(chains.shape[1]) - (1 - restart) * chains
    system[:, :, 0] = 1.0
    solution = np.asarray(np.linalg.solve(system, costs[..., None])[..., 0], dtype=np.float64)
    gain = solution[:, 0].copy()
    solution[:, 0] = 0.0
    return gain, solution
