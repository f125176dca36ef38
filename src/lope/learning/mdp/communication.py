"""Is a process weakly communicating, so that its best average cost does not depend on where it starts?"""

import numpy as np
from numpy.typing import NDArray

from lope.core.errors import UsageError
from lope.learning.mdp.model import MDP


def require_weakly_communicating(mdp: MDP) -> None:
    """Refuse a multichain process with UsageError: regret against one J* has no meaning there.

    Weakly communicating (Puterman 1994, section 8.3.1): one closed set of states, each of which can be reached from
    each other under some policy; all other states are left for good under every policy.
    """
    reach = _reachable(mdp.transitions.max(axis=1) > 0)
    together = reach & reach.T
    closed = [state for state in range(mdp.num_states) if (reach[state] == together[state]).all()]
    classes = {tuple(int(s) for s in np.flatnonzero(together[state])) for state in closed}
    if len(classes) > 1:
        first, second = sorted(classes)[:2]
        raise UsageError(
            f"the process is multichain: from states {list(first)} and from states {list(second)} nothing else can be "
            "reached, so the best average cost depends on the start; learn on each part alone"
        )
    resting = _can_stay(mdp.transitions, outside=set(range(mdp.num_states)) - set(classes.pop()))
    if resting:
        raise UsageError(
            f"the process is multichain: a policy can stay in states {sorted(resting)} for ever and need not come back "
            "once it has left; regret is defined for weakly communicating processes only"
        )


def _reachable(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[S, S]: can s lead to t under some policy? The transitive closure, each state reaching itself, by squaring."""
    reach = edges | np.eye(len(edges), dtype=bool)
    for _ in range(int(np.ceil(np.log2(max(2, len(edges)))))):
        reach = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
    return reach


def _can_stay(transitions: NDArray[np.float64], outside: set[int]) -> set[int]:
    """The states among `outside` where some policy stays in that set for ever."""
    staying = set(outside)
    while True:
        others = [state for state in range(len(transitions)) if state not in staying]
        leaving = {s for s in staying if (transitions[s][:, others].sum(axis=1) > 0).all()}
        if not leaving:
            return staying
        staying -= leaving
