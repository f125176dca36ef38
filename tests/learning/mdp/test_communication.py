"""Weakly communicating processes pass, multichain ones are named."""

import numpy as np
import pytest

from lope.core.errors import LopeError
from lope.learning.mdp.communication import require_weakly_communicating
from lope.learning.mdp.model import MDP
from lope.learning.mdp.random_mdp import RandomMDP
from lope.learning.mdp.riverswim import RiverSwim


def process(moves: list[list[list[int]]]) -> MDP:
    """moves[s][a]: the states that a leads to from s, equally likely."""
    tensor = np.zeros((len(moves), len(moves[0]), len(moves)))
    for state, actions in enumerate(moves):
        for action, targets in enumerate(actions):
            tensor[state, action, targets] = 1 / len(targets)
    return MDP(tensor, np.zeros(tensor.shape[:2]))


@pytest.mark.parametrize(
    "mdp",
    [
        RiverSwim().draw(0),
        RandomMDP().draw(0),
        process([[[0]]]),
        process([[[1], [0]], [[0], [1]]]),  # communicating: some policies stay, some cross
        process([[[0, 1], [1]], [[1], [2]], [[1], [1]]]),  # state 0 is left for good under every policy
    ],
)
def test_weakly_communicating(mdp: MDP) -> None:
    require_weakly_communicating(mdp)


@pytest.mark.parametrize(
    ("mdp", "message"),
    [
        (process([[[0]], [[1]]]), r"from states \[0\] and from states \[1\]"),
        (process([[[1], [2]], [[1], [1]], [[2], [2]]]), r"from states \[1\] and from states \[2\]"),
        (process([[[0], [1]], [[1], [1]]]), r"can stay in states \[0\]"),  # one-way door that need not be taken
    ],
)
def test_multichain(mdp: MDP, message: str) -> None:
    with pytest.raises(LopeError, match=message):
        require_weakly_communicating(mdp)
