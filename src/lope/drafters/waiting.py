"""A drafter that has nothing to go by until the target has run: before that it drafts nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lope.core.draft import EMPTY, Draft, Draw
from lope.core.prompt import Prompt
from lope.core.protocols import Ask, Drafter, DraftSession
from lope.core.sampling import Sampling
from lope.core.scores import Needs


class WaitingSession(DraftSession, Protocol):
    """A session that can say whether it has what a draft begins with."""

    @property
    def ready(self) -> bool:
        """Whether it can draft now."""


S = TypeVar("S", bound=WaitingSession)
BesideT = TypeVar("BesideT", contravariant=True)


@dataclass(frozen=True, eq=False)
class WaitingDrafter(Generic[S, BesideT]):
    """`drafter`, asked for those requests of a round whose sessions are ready; the others get the empty draft."""

    drafter: Drafter[S, BesideT]

    @property
    def needs(self) -> Needs:
        """The drafter's."""
        return self.drafter.needs

    @property
    def sources(self) -> tuple[str, ...]:
        """The drafter's."""
        return self.drafter.sources

    def draws(self, greedy: bool) -> frozenset[Draw]:
        """The drafter's."""
        return self.drafter.draws(greedy)

    def sampling(self, request: Sampling) -> Sampling:
        """The drafter's."""
        return self.drafter.sampling(request)

    def open(self, prompt: Prompt, beside: BesideT) -> S:
        """A session of the drafter."""
        return self.drafter.open(prompt, beside)

    def fork(self, session: S, beside: BesideT) -> S:
        """An independent copy."""
        return self.drafter.fork(session, beside)

    def propose(self, asks: Sequence[Ask[S]]) -> list[Draft]:
        """A draft for each ask."""
        drafts = [EMPTY] * len(asks)
        ready = [number for number, ask in enumerate(asks) if ask.session.ready]
        for number, draft in zip(ready, self.drafter.propose([asks[number] for number in ready]), strict=True):
            drafts[number] = draft
        return drafts
