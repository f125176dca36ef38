"""Recursive rejection sampling over siblings that are independent of each other."""

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
class RecursiveWithReplacementVerifier:
    """SpecInfer's multi-step speculative sampling, Miao et al. 2023 (arXiv:2305.09781), VerifyStochastic.

    Equal siblings stay separate: each is one more test against the same draft law.
    """

    lossless: ClassVar[bool] = True
    shares_noise: ClassVar[bool] = False

    def accepts(self, greedy: bool) -> frozenset[Draw] | None:
        """Independent siblings, single drawn children and points."""
        return frozenset({Draw.ONLY, Draw.INDEPENDENT, Draw.POINT})

    def verify(self, draft: Draft, scores: Scores, sampler: Sampler, chance: Chance) -> Verdict:
        """Test siblings in the order drawn; a refused one leaves the residual to the next, the draft's law stays."""

        def decide(target: Rows, node: int, position: int) -> tuple[int | None, int]:
            return examine(draft, node, target, position, chance, _the_same)

        return walk(draft, scores, sampler, decide)


def _the_same(law: Tensor, token: int) -> Tensor:
    return law
