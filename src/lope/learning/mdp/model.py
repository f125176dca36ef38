"""A finite Markov decision process in cost form, checked when it is made."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lope.core.checks import at_least
from lope.core.errors import UsageError

ROW_TOLERANCE = 1e-9  # a row written with ten decimals still passes; a forgotten state does not


@dataclass(frozen=True, eq=False)
class MDP:
    """States, actions, transition probabilities and mean costs in [0, 1] (Ouyang et al. 2017, section 2).

    transitions: [S, A, S], transitions[s, a, t] = P(t | s, a), every row sums to one.
    costs: [S, A], the mean cost of taking a in s; turn a reward r in [0, 1] into 1 - r.
    cost_noise: 0 says that learners know the costs; above 0 they see cost + N(0, cost_noise^2) and must learn it.
    Raises UsageError that names the first bad state and action.
    """

    transitions: NDArray[np.float64]
    costs: NDArray[np.float64]
    cost_noise: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "transitions", _tensor("transitions", self.transitions))
        object.__setattr__(self, "costs", _tensor("costs", self.costs))
        at_least("cost_noise", self.cost_noise, 0.0)
        shape = self.transitions.shape
        if len(shape) != 3 or shape[0] != shape[2] or 0 in shape:
            raise UsageError(f"transitions must have shape [states, actions, states], not {list(shape)}")
        if self.costs.shape != shape[:2]:
            raise UsageError(f"costs must have shape {list(shape[:2])} (states, actions), not {list(self.costs.shape)}")
        _refuse("a negative transition probability", self.transitions.min(axis=2), self.transitions.min(axis=2) < 0)
        sums = self.transitions.sum(axis=2)
        _refuse("transition probabilities that do not sum to one", sums, abs(sums - 1) > ROW_TOLERANCE)
        _refuse("a cost outside [0, 1]", self.costs, (self.costs < 0) | (self.costs > 1))

    @property
    def num_states(self) -> int:
        """S."""
        return len(self.transitions)

    @property
    def num_actions(self) -> int:
        """A."""
        return len(self.transitions[0])


def stack(mdps: Sequence[MDP]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Transitions [N, S, A, S] and costs [N, S, A] of N processes of one size. Raises UsageError where sizes differ."""
    shapes = {mdp.costs.shape for mdp in mdps}
    if len(shapes) != 1:
        raise UsageError(f"runs side by side need processes of one size, not {sorted(shapes)}")
    return np.stack([mdp.transitions for mdp in mdps]), np.stack([mdp.costs for mdp in mdps])


def _tensor(name: str, values: ArrayLike) -> NDArray[np.float64]:
    try:
        tensor = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be a rectangular table of numbers") from None
    if not np.isfinite(tensor).all():
        raise UsageError(f"{name} must be finite numbers; there is a NaN or an infinity in them")
    tensor.setflags(write=False)
    return tensor


def _refuse(what: str, values: NDArray[np.float64], bad: NDArray[np.bool_]) -> None:
    if bad.any():
        state, action = (int(index) for index in np.argwhere(bad)[0])
        raise UsageError(f"state {state}, action {action} has {what}: {values[state, action]:.9g}")
