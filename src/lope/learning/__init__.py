"""Learners that know no language: bandits, TSDE, PSRL-LQ, and the environments they are measured on."""

from lope.core.registry import Room

BANDITS = Room(
    "bandit",
    {
        "fixed": "lope.learning.bandits.fixed_arm:FixedArm",
        "ucb1": "lope.learning.bandits.ucb1:UCB1",
        "ucb_tuned": "lope.learning.bandits.ucb_tuned:UCBTuned",
        "thompson": "lope.learning.bandits.beta_thompson:BetaThompson",
        "gaussian_thompson": "lope.learning.bandits.gaussian_thompson:GaussianThompson",
        "exp3": "lope.learning.bandits.exp3:Exp3",
        "epsilon_greedy": "lope.learning.bandits.epsilon_greedy:EpsilonGreedy",
        "linear_thompson": "lope.learning.bandits.linear_thompson:LinearThompson",
    },
)

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

LQ_LEARNERS = Room(
    "LQ learner",
    {
        "optimal": "lope.learning.lq.optimal:Optimal",
        "psrl_lq": "lope.learning.lq.psrl_lq:PsrlLq",
        "certainty_equivalence": "lope.learning.lq.certainty_equivalence:CertaintyEquivalence",
    },
)

LQ_SYSTEMS = Room(
    "LQ system",
    {
        "public": "lope.learning.lq.public_system:PublicSystem",
        "laplacian": "lope.learning.lq.laplacian_system:LaplacianSystem",
        "unstable": "lope.learning.lq.unstable_system:UnstableSystem",
        "file": "lope.learning.lq.system_file:SystemFile",
    },
)
