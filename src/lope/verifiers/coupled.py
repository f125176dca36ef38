"""Accepts the path that the target itself would have sampled; the seed fixes the text, whatever was drafted."""

from dataclasses import dataclass
from typing import ClassVar

from lope.core.draft import Draft, Draw
from lope.core.protocols import Chance, Sampler
from lope.core.rows import Rows
from lope.core.scores import Scores
from lope.core.verdict import Verdict
from lope.verifiers.residual import Residual
from lope.verifiers.walk import matching, walk


@dataclass(frozen=True)
class CoupledVerifier:
    """Exact match with the token that the target draws by the noise of (seed, position): Gumbel coupling.

    Drafter-invariant speculative decoding, Daliri, Musco & Suresh 2024 (arXiv:2408.07978). A draft that draws with the
    same noise agrees with the target more often; one that does not is verified just as exactly.
    """

    lossless: ClassVar[bool] = True
    shares_noise: ClassVar[bool] = True

    def accepts(self, greedy: bool) -> frozenset[Draw] | None:
        """Every kind of draw: the target's token does not depend on the draft."""
        return frozenset(Draw)

    def verify(self, draft: Draft, scores: Scores, sampler: Sampler, chance: Chance) -> Verdict:
        """The longest path of the target's own draws, and its draw after it."""

        def decide(target: Rows, node: int, position: int) -> tuple[int | None, int]:
            drawn = Residual.of(target).draw(chance, position)
            return matching(draft, node, drawn), drawn

        return walk(draft, scores, sampler, decide)
