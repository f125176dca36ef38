"""Drafts nothing: plain decoding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from lope.core.draft import EMPTY, Draft, Draw
from lope.core.prompt import Prompt
from lope.core.protocols import Ask
from lope.core.sampling import Sampling
from lope.core.scores import Needs, Scores
from lope.core.verdict import Verdict
from lope.drafters.workshop import Workshop


class NoneSession:
    """Remembers nothing."""

    def extend(self, prompt: Prompt) -> None:
        """Nothing to do."""

    def commit(self, draft: Draft, scores: Scores, verdict: Verdict) -> None:
        """Nothing to do."""


@dataclass(frozen=True)
class NoneDrafter:
    """Proposes the empty draft: one token for each pass of the target."""

    needs: ClassVar[Needs] = Needs()
    sources: ClassVar[tuple[str, ...]] = ()

    def attach(self, workshop: Workshop) -> Self:
        """Itself."""
        return self

    def draws(self, greedy: bool) -> frozenset[Draw]:
        """Points, of which there are none."""
        return frozenset({Draw.POINT})

    def sampling(self, request: Sampling) -> Sampling:
        """The request's own; it draws nothing."""
        return request

    def open(self, prompt: Prompt, beside: object) -> NoneSession:
        """A session that remembers nothing."""
        return NoneSession()

    def fork(self, session: NoneSession, beside: object) -> NoneSession:
        """Another one."""
        return NoneSession()

    def propose(self, asks: Sequence[Ask[NoneSession]]) -> list[Draft]:
        """An empty draft for each."""
        return [EMPTY] * len(asks)
