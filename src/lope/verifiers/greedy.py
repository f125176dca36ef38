"""Accepts the path that the target's best tokens take; exact at temperature 0, refuses any other."""

from dataclasses import dataclass
from typing import ClassVar

from lope.core.draft import Draft, Draw
from lope.core.protocols import Chance, Sampler
from lope.core.rows import Rows
from lope.core.scores import Scores
from lope.core.verdict import Verdict
from lope.verifiers.walk import matching, walk


@dataclass(frozen=True)
class GreedyVerifier:
    """Stern et al. 2018 (arXiv:1811.03115) §3, on trees: a child is accepted if it is the target's argmax."""

    lossless: ClassVar[bool] = True
    shares_noise: ClassVar[bool] = False

    def accepts(self, greedy: bool) -> frozenset[Draw] | None:
        """Every kind of draw at temperature 0; it cannot sample."""
        return frozenset(Draw) if greedy else None

    def verify(self, draft: Draft, scores: Scores, sampler: Sampler, chance: Chance) -> Verdict:
        """The longest path of best tokens, and the best token after it."""
        assert sampler.greedy, "the greedy rule cannot sample"

        def decide(target: Rows, node: int, position: int) -> tuple[int | None, int]:
            best = int(target.tokens(0, target.values[0].argmax()))
            return matching(draft, node, best), best

        return walk(draft, scores, sampler, decide)
