"""A drafter that is listened to while it drafts: the laws that it drew from, added up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from lope.core.draft import Draft, Draw
from lope.core.prompt import Prompt
from lope.core.protocols import Ask, Drafter
from lope.core.rows import Rows
from lope.core.sampling import Sampling
from lope.core.scores import Needs


@dataclass(eq=False)
class ListeningDrafter:
    """Drafts as `drafter` does. heard: float64 [V], how often each token was to be expected in what it drafted.

    Added up are whole laws, not the tokens drawn from them: the same mean, with less noise. A drafter that names its
    tokens without chance, as at temperature 0, is not heard.
    """

    drafter: Drafter[Any, Any]
    heard: Tensor

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

    def open(self, prompt: Prompt, beside: Any) -> Any:
        """A session of the drafter."""
        return self.drafter.open(prompt, beside)

    def fork(self, session: Any, beside: Any) -> Any:
        """An independent copy."""
        return self.drafter.fork(session, beside)

    def propose(self, asks: Sequence[Ask[Any]]) -> list[Draft]:
        """The drafter's drafts."""
        drafts = self.drafter.propose(asks)
        for draft in drafts:
            if draft.laws is not None:
                self._add(draft.laws)
        return drafts

    def _add(self, laws: Rows) -> None:
        for row in range(len(laws)):
            self.heard.index_add_(0, laws.held(row).cpu(), laws.values[row].to(self.heard).cpu())
