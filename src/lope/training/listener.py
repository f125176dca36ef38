"""Listens to a drafter while it drafts: the laws that it drew from, added up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from lope.core.draft import Draft
from lope.core.protocols import Ask
from lope.core.rows import Rows
from lope.drafters.around import Propose


@dataclass(eq=False)
class Listener:
    """Stands around a drafter (AroundDrafter). heard: float64 [V], how often each token was to be expected in drafts.

    Added up are whole laws, not the tokens drawn from them: the same mean, with less noise. A drafter that names its
    tokens without chance, as at temperature 0, is not heard.
    """

    heard: Tensor

    def __call__(self, propose: Propose[Any], asks: Sequence[Ask[Any]]) -> list[Draft]:
        """The drafter's drafts."""
        drafts = propose(asks)
        for draft in drafts:
            if draft.laws is not None:
                self._add(draft.laws)
        return drafts

    def _add(self, laws: Rows) -> None:
        for row in range(len(laws)):
            self.heard.index_add_(0, laws.held(row).cpu(), laws.values[row].to(self.heard).cpu())
