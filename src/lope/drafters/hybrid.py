"""Copies where the text repeats itself, and lets another drafter go ahead where it does not.

A copy costs nothing and, where there is one, is right for many tokens at once; a taught drafter is right for a few,
anywhere. A copy goes as far as what it follows was matched: the longer a match, the longer it holds (SuffixDecoding,
Oliaro et al. 2024, arXiv:2411.04975, with a factor of 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from lope.core.draft import EMPTY, Draft, Draw, chain
from lope.core.prompt import Prompt
from lope.core.protocols import Ask, Drafter, DraftSession
from lope.core.sampling import Sampling
from lope.core.scores import Needs, Scores
from lope.core.verdict import Verdict
from lope.drafters import DRAFTERS
from lope.drafters.ngram import NgramDrafter, NgramSession
from lope.drafters.workshop import Workshop

D = TypeVar("D", bound=DraftSession)
BesideT = TypeVar("BesideT", contravariant=True)
_COPIED = 0  # the first of the sources; the other drafter's stand behind it


@dataclass(frozen=True)
class HybridDrafter:
    r"""`ngram` where the last min_ngram tokens stood before, else `drafter`: a name, settings may follow, `\,` between.

    max_ngram: also how many tokens a copy is at most. What `drafter` says has the shape and the stop rule that were
    chosen.
    """

    drafter: str = "eagle"
    min_ngram: int = 2
    max_ngram: int = 8

    def __post_init__(self) -> None:
        self._copier()

    def attach(self, workshop: Workshop) -> "CopyingDrafter[Any, Any]":
        """Attach the other drafter. Raises what that raises."""
        return CopyingDrafter(self._copier(), DRAFTERS.make(self.drafter).attach(workshop))

    def _copier(self) -> NgramDrafter:
        return NgramDrafter(self.max_ngram, self.min_ngram)


@dataclass(eq=False)
class CopyingSession(Generic[D]):
    """Both sessions of one request; each is told all that is said."""

    copied: NgramSession
    inner: D

    def extend(self, prompt: Prompt) -> None:
        """Append context items."""
        self.copied.extend(prompt)
        self.inner.extend(prompt)

    def commit(self, draft: Draft, scores: Scores, verdict: Verdict) -> None:
        """Append what was emitted, whoever drafted it."""
        self.copied.commit(draft, scores, verdict)
        self.inner.commit(draft, scores, verdict)


@dataclass(frozen=True, eq=False)
class CopyingDrafter(Generic[D, BesideT]):
    """Each draft is of one source alone, chosen by the context: no chance is in the choice."""

    copier: NgramDrafter
    drafter: Drafter[D, BesideT]

    @property
    def needs(self) -> Needs:
        """The other drafter's: copies need nothing."""
        return self.drafter.needs

    @property
    def sources(self) -> tuple[str, ...]:
        """The copier's, then the other drafter's."""
        return (*self.copier.sources, *self.drafter.sources)

    def draws(self, greedy: bool) -> frozenset[Draw]:
        """Those of both."""
        return self.copier.draws(greedy) | self.drafter.draws(greedy)

    def sampling(self, request: Sampling) -> Sampling:
        """The other drafter's: copies are not drawn."""
        return self.drafter.sampling(request)

    def open(self, prompt: Prompt, beside: BesideT) -> CopyingSession[D]:
        """Both sessions."""
        return CopyingSession(self.copier.open(prompt, beside), self.drafter.open(prompt, beside))

    def fork(self, session: CopyingSession[D], beside: BesideT) -> CopyingSession[D]:
        """Independent copies of both."""
        return CopyingSession(self.copier.fork(session.copied, beside), self.drafter.fork(session.inner, beside))

    def propose(self, asks: Sequence[Ask[CopyingSession[D]]]) -> list[Draft]:
        """Copies first; the other drafter runs for the rest in one round of its own."""
        drafts = [EMPTY] * len(asks)
        rest: list[int] = []
        for number, ask in enumerate(asks):
            if ask.budget.source in (None, _COPIED):
                copied = ask.session.copied.as_far_as_matched(min(ask.budget.nodes, ask.budget.depth))
                drafts[number] = chain(copied) if copied else EMPTY
            if not len(drafts[number]) and ask.budget.source != _COPIED:
                rest.append(number)
        inner = self.drafter.propose([_inner(asks[number]) for number in rest])
        for number, draft in zip(rest, inner, strict=True):
            drafts[number] = replace(draft, source=tuple(source + 1 for source in draft.source))
        return drafts


def _inner(ask: Ask[CopyingSession[D]]) -> Ask[D]:
    source = None if ask.budget.source is None else ask.budget.source - 1
    return Ask(ask.session.inner, replace(ask.budget, source=source), ask.sampler, ask.chance)
