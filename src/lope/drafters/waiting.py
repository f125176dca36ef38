"""For a drafter that has nothing to go by until the target has run: before that it drafts nothing."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from lope.core.draft import EMPTY, Draft
from lope.core.protocols import Ask, DraftSession
from lope.drafters.around import Propose


class WaitingSession(DraftSession, Protocol):
    """A session that can say whether it has what a draft begins with."""

    @property
    def ready(self) -> bool:
        """Whether it can draft now."""


S = TypeVar("S", bound=WaitingSession)


def when_ready(propose: Propose[S], asks: Sequence[Ask[S]]) -> list[Draft]:
    """Drafts for those requests of a round whose sessions are ready; the others get the empty draft."""
    drafts = [EMPTY] * len(asks)
    ready = [number for number, ask in enumerate(asks) if ask.session.ready]
    for number, draft in zip(ready, propose([asks[number] for number in ready]), strict=True):
        drafts[number] = draft
    return drafts
