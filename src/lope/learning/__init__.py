"""Learners that know no language: bandits, TSDE, PSRL-LQ, and the environments they are measured on."""

from lope.core.registry import Room

MDP_LEARNERS = Room(
    "MDP learner",
    {
        "tsde": "lope.learning.mdp.tsde:Tsde",
        "lazy": "lope.learning.mdp.lazy:Lazy",
        "linear": "lope.learning.mdp.linear:Linear",
        "ucrl2": "lope.learning.mdp.ucrl2:Ucrl2",
    },
)

MDPS = Room(
    "MDP",
    {
        "riverswim": "lope.learning.mdp.riverswim:RiverSwim",
        "random": "lope.learning.mdp.random_mdp:RandomMDP",
        "file": "lope.learning.mdp.mdp_file:MdpFile",
    },
)
