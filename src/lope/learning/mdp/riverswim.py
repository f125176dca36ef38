"""RiverSwim: swim right against the current for the only free state (Strehl and Littman 2008)."""

from dataclasses import dataclass

import numpy as np

from lope.core.checks import at_least
from lope.core.errors import SettingError
from lope.learning.mdp.model import MDP

# variant -> (right from the left end: stay, right), (right in the middle: left, stay, right),
#            (right at the right end: left, stay), cost of going left in state 0
VARIANTS = {
    "tsde": ((0.7, 0.3), (0.1, 0.6, 0.3), (0.7, 0.3), 0.8),
    "ucrl": ((0.4, 0.6), (0.05, 0.6, 0.35), (0.4, 0.6), 0.995),
}


@dataclass(frozen=True)
class RiverSwim:
    """A chain of states; left (action 0) always works, right (action 1) often does not.

    variant `tsde`: the form in the code of TSDE's authors (mgagrani/TSDE): costs 0.8 for left in state 0, 0 for right
    in the last state, 1 elsewhere. variant `ucrl`: the form of the UCRL library (RonanFR/UCRL), rewards 5/1000 and 1
    written as costs. The two differ in every number: name the variant beside a figure.
    """

    states: int = 6
    variant: str = "tsde"
    cost_noise: float = 0.0

    def __post_init__(self) -> None:
        at_least("states", self.states, 3)
        if self.variant not in VARIANTS:
            raise SettingError(f"riverswim: variant must be one of {', '.join(VARIANTS)}, not {self.variant!r}")

    def draw(self, seed: int) -> MDP:
        """The process; `seed` does not matter, there is only one."""
        start, middle, end, cost_left = VARIANTS[self.variant]
        last = self.states - 1
        transitions = np.zeros((self.states, 2, self.states))
        transitions[0, 0, 0] = 1.0
        transitions[np.arange(1, self.states), 0, np.arange(last)] = 1.0
        transitions[0, 1, :2] = start
        for state in range(1, last):
            transitions[state, 1, state - 1 : state + 2] = middle
        transitions[last, 1, last - 1 :] = end
        costs = np.ones((self.states, 2))
        costs[0, 0], costs[last, 1] = cost_left, 0.0
        return MDP(transitions, costs, self.cost_noise)
