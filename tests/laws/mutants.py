"""Faults that have been made before, each of which the laws must catch. None of them is a part of lope."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from lope.core.draft import ROOT, Draft, Draw
from lope.core.prompt import Path
from lope.core.protocols import Chance, Sampler, Verifier
from lope.core.rows import Rows
from lope.core.scores import Scores
from lope.core.verdict import Verdict
from lope.verifiers.residual import Residual
from lope.verifiers.siblings import examine
from lope.verifiers.walk import walk

NextLaw = Callable[[Tensor, int], Tensor]


def renormalised(law: Tensor, token: int) -> Tensor:
    rest = unrenormalised(law, token)
    return rest / rest.sum()


def unrenormalised(law: Tensor, token: int) -> Tensor:
    """The refused token leaves the draft's law, but nobody divides by what is left.

    The same as taking siblings without replacement for independent ones: the refused token's residual is 0 anyway.
    """
    rest = law.clone()
    rest[token] = 0.0
    return rest


@dataclass(frozen=True)
class Faulty:
    """The recursive rule with another sibling law, or without the residual."""

    next_law: NextLaw = renormalised
    residual: bool = True

    lossless = True
    shares_noise = False

    def accepts(self, greedy: bool) -> frozenset[Draw] | None:
        return frozenset(Draw)

    def verify(self, draft: Draft, scores: Scores, sampler: Sampler, chance: Chance) -> Verdict:
        def decide(target: Rows, node: int, position: int) -> tuple[int | None, int]:
            child, token = examine(draft, node, target, position, chance, self.next_law)
            if child is None and not self.residual:
                token = Residual.of(target).draw(chance, position)
            return child, token

        return walk(draft, scores, sampler, decide)


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


Arrange = Callable[[Draft, Path], Path]


def rearranged(draft: Draft, arrange: Arrange) -> Draft:
    """The draft with each family of children rearranged, some left out; nodes are numbered anew, level by level."""
    order: list[int] = []
    level = [ROOT]
    while level:
        level = [child for node in level for child in arrange(draft, draft.children[node + 1])]
        order += level
    number = {ROOT: ROOT} | {node: index for index, node in enumerate(order)}
    return Draft(
        tuple(draft.tokens[node] for node in order),
        tuple(number[draft.parents[node]] for node in order),
        tuple(draft.draws[node] for node in order),
        tuple(draft.source[node] for node in order),
        draft.laws,
        tuple(draft.law_of[node + 1] for node in (ROOT, *order)),
    )


def shuffled(draft: Draft, family: Path) -> Path:
    """Siblings sorted by token: some order, but not the one in which they were drawn."""
    return tuple(sorted(family, key=lambda node: (draft.draws[node] is Draw.POINT, draft.tokens[node])))


def dropped(draft: Draft, family: Path) -> Path:
    """Drawn tokens that the draft thinks unlikely are not worth a row."""
    return tuple(node for node in family if draft.draws[node] is Draw.POINT or _own(draft, node) >= 0.25)


def merged(draft: Draft, family: Path) -> Path:
    """Equal siblings become one."""
    return tuple(node for node in family if draft.firsts[node] == node)


def points_first(draft: Draft, family: Path) -> Path:
    """Points, of which those that were also drawn have been left out, are tested before the drawn siblings."""
    return tuple(sorted(family, key=lambda node: draft.draws[node] is not Draw.POINT))


def _own(draft: Draft, node: int) -> float:
    assert draft.laws is not None
    return float(draft.laws.dense(draft.law_of[draft.parents[node] + 1])[draft.tokens[node]])


@dataclass(frozen=True)
class Mutant:
    """A fault: what happens to the draft on its way, and who verifies it."""

    verifier: Verifier
    arrange: Arrange | None = None

    def changed(self, draft: Draft) -> Draft:
        return draft if self.arrange is None else rearranged(draft, self.arrange)
