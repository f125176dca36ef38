"""Speculative sampling: accept the drafted token with min(1, target / draft), else draw from what is left over."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from lope.core.draft import Draft, Draw
from lope.core.protocols import Chance, Sampler
from lope.core.rows import Rows
from lope.core.scores import Scores
from lope.core.verdict import Verdict
from lope.verifiers.siblings import examine
from lope.verifiers.walk import walk


@dataclass(frozen=True)
class RejectionVerifier:
    """Leviathan et al. 2023 (arXiv:2211.17192), algorithm 1; one drawn child a parent, and points beside it."""

    lossless: ClassVar[bool] = True
    shares_noise: ClassVar[bool] = False

    def accepts(self, greedy: bool) -> frozenset[Draw] | None:
        """Single drawn children and points."""
        return frozenset({Draw.ONLY, Draw.POINT})

    def verify(self, draft: Draft, scores: Scores, sampler: Sampler, chance: Chance) -> Verdict:
        """Accept down the chain; the first refusal emits a token of the residual."""

        def decide(target: Rows, node: int, position: int) -> tuple[int | None, int]:
            return examine(draft, node, target, position, chance, _no_next)

        return walk(draft, scores, sampler, decide)


def _no_next(law: Tensor, token: int) -> Tensor:
    raise AssertionError("the chain rule takes one drawn child a parent")
