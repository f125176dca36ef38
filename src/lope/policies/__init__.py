"""How much to draft this round."""

from lope.core.registry import Room

POLICIES = Room(
    "policy",
    {
        "fixed": "lope.policies.fixed:FixedPolicy",
        "calibrated": "lope.policies.calibrated:CalibratedPolicy",
        "heuristic": "lope.policies.heuristic:HeuristicPolicy",
    },
)
