"""Faults that speculative decoders have had, to be planted on purpose: a check that does not find them is no check.

Used by `lope check --plant` and by the laws in tests/laws; no part of any engine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from lope.core.draft import ROOT, Draft, Draw
from lope.core.prompt import Path
from lope.core.protocols import Ask, Chance, Drafter, Sampler, Verifier
from lope.core.rows import Rows
from lope.core.scores import Scores
from lope.core.verdict import Verdict
from lope.verifiers.residual import Residual
from lope.verifiers.siblings import examine
from lope.verifiers.walk import walk

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


def _own(draft: Draft, node: int) -> float:
    assert draft.laws is not None
    return float(draft.laws.dense(draft.law_of[draft.parents[node] + 1])[draft.tokens[node]])


def unrenormalised(law: Tensor, token: int) -> Tensor:
    """The refused token leaves the draft's law, but nobody divides by what is left."""
    rest = law.clone()
    rest[token] = 0.0
    return rest


def renormalised(law: Tensor, token: int) -> Tensor:
    """What a refused token leaves of the draft's law. No fault."""
    rest = unrenormalised(law, token)
    return rest / rest.sum()


@dataclass(frozen=True)
class FaultyVerifier:
    """The recursive rule with another sibling law, or without the residual."""

    next_law: Callable[[Tensor, int], Tensor] = renormalised
    residual: bool = True
    lossless = False
    shares_noise = False

    def accepts(self, greedy: bool) -> frozenset[Draw] | None:
        """Whatever it is given."""
        return frozenset(Draw)

    def verify(self, draft: Draft, scores: Scores, sampler: Sampler, chance: Chance) -> Verdict:
        """The walk of the recursive rule, with the fault."""

        def decide(target: Rows, node: int, position: int) -> tuple[int | None, int]:
            child, token = examine(draft, node, target, position, chance, self.next_law)
            if child is None and not self.residual:
                token = Residual.of(target).draw(chance, position)
            return child, token

        return walk(draft, scores, sampler, decide)


@dataclass(frozen=True, eq=False)
class RearrangingDrafter:
    """A drafter whose trees are rearranged on their way to the target."""

    inner: Drafter[Any, Any]
    arrange: Arrange

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def propose(self, asks: Sequence[Ask[Any]]) -> list[Draft]:
        """The inner drafts, each family rearranged."""
        return [rearranged(draft, self.arrange) for draft in self.inner.propose(asks)]


@dataclass(frozen=True)
class Fault:
    """One planted fault: another verifier, or another arrangement of the draft; for drafts with these kinds of draw."""

    kinds: frozenset[Draw]
    verifier: Verifier | None = None
    arrange: Arrange | None = None

    def touches(self, kinds: frozenset[Draw]) -> bool:
        """Whether a draft with these kinds of draw shows the fault (a faulty rule must be able to verify all of it)."""
        foreign = kinds - self.kinds - {Draw.ONLY, Draw.POINT}
        return bool(kinds & self.kinds) and (self.verifier is None or not foreign)

    def drafter(self, drafter: Drafter[Any, Any]) -> Drafter[Any, Any]:
        """The drafter with the fault in it."""
        return drafter if self.arrange is None else RearrangingDrafter(drafter, self.arrange)


_DRAWN = frozenset({Draw.ONLY, Draw.INDEPENDENT, Draw.WITHOUT_REPLACEMENT})
FAULTS = {
    "no-residual": Fault(_DRAWN - {Draw.INDEPENDENT}, verifier=FaultyVerifier(residual=False)),
    "unrenormalised": Fault(frozenset({Draw.WITHOUT_REPLACEMENT}), verifier=FaultyVerifier(unrenormalised)),
    "shuffled": Fault(frozenset({Draw.WITHOUT_REPLACEMENT}), arrange=shuffled),
    "dropped": Fault(_DRAWN, arrange=dropped),
    "merged": Fault(frozenset({Draw.INDEPENDENT}), arrange=merged),
}
