"""Verifiers: (Draft, Scores) -> Verdict. Each accepts a path of the draft and emits one token more."""

from lope.core.registry import Room

VERIFIERS = Room(
    "verifier",
    {
        "greedy": "lope.verifiers.greedy:GreedyVerifier",
        "coupled": "lope.verifiers.coupled:CoupledVerifier",
        "rejection": "lope.verifiers.rejection:RejectionVerifier",
        "recursive": "lope.verifiers.recursive:RecursiveVerifier",
        "recursive_with_replacement": "lope.verifiers.recursive_with_replacement:RecursiveWithReplacementVerifier",
    },
)
