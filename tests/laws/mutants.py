"""Faults beside those of lope.engine.planted, and how a fault is put between a table's drafts and a verifier."""

from dataclasses import dataclass, replace

from lope.core.draft import Draft, Draw
from lope.core.prompt import Path
from lope.core.protocols import Chance, Sampler, Verifier
from lope.core.rows import Rows
from lope.core.scores import Scores
from lope.core.verdict import Verdict
from lope.engine.planted import Arrange, rearranged
from lope.verifiers.residual import Residual
from lope.verifiers.walk import walk


@dataclass(frozen=True)
class Masking:
    """Tests min(1, target / draft), but after a refusal masks the token where the draft's law should be subtracted."""

    lossless = True
    shares_noise = False

    def accepts(self, greedy: bool) -> frozenset[Draw] | None:
        return frozenset(Draw)

    def verify(self, draft: Draft, scores: Scores, sampler: Sampler, chance: Chance) -> Verdict:
        def decide(target: Rows, node: int, position: int) -> tuple[int | None, int]:
            residual = Residual.of(target)
            for child in draft.children[node + 1]:
                assert draft.laws is not None
                token = draft.tokens[child]
                law = draft.laws.dense(draft.law_of[node + 1])
                if chance.accept(residual.mass(token) / float(law[token])):
                    return child, token
                residual = residual.without(token) or residual
            return None, residual.draw(chance, position)

        return walk(draft, scores, sampler, decide)


def named(draft: Draft) -> Draft:
    """The same tree, its sampled nodes passed off as points. No fault: see the law test."""
    return replace(draft, draws=(Draw.POINT,) * len(draft))


def points_first(draft: Draft, family: Path) -> Path:
    """Points, of which those that were also drawn have been left out, are tested before the drawn siblings."""
    return tuple(sorted(family, key=lambda node: draft.draws[node] is not Draw.POINT))


@dataclass(frozen=True)
class Mutant:
    """A fault: what happens to the draft on its way, and who verifies it."""

    verifier: Verifier
    arrange: Arrange | None = None

    def changed(self, draft: Draft) -> Draft:
        return draft if self.arrange is None else rearranged(draft, self.arrange)
