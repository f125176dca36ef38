"""Recursive rejection sampling over siblings that were drawn without replacement."""

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
class RecursiveVerifier:
    """Recursive speculative decoding, Jeon et al. 2024 (arXiv:2402.14160): refused siblings leave the draft's law."""

    lossless: ClassVar[bool] = True
    shares_noise: ClassVar[bool] = False

    def accepts(self, greedy: bool) -> frozenset[Draw] | None:
        """Siblings without replacement, single drawn children and points."""
        return frozenset({Draw.ONLY, Draw.WITHOUT_REPLACEMENT, Draw.POINT})

    def verify(self, draft: Draft, scores: Scores, sampler: Sampler, chance: Chance) -> Verdict:
        """Test siblings in the order drawn; a refused one leaves residual and remaining law to the next."""

        def decide(target: Rows, node: int, position: int) -> tuple[int | None, int]:
            return examine(draft, node, target, position, chance, _what_remains)

        return walk(draft, scores, sampler, decide)


def _what_remains(law: Tensor, token: int) -> Tensor:
    """The draft's law [V] given that it is not `token`: summed anew, because 1 - law[token] cancels."""
    rest = law.clone()
    rest[token] = 0.0
    return rest.div_(rest.sum())
