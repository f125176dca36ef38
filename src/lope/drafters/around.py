"""A drafter around another one: all is the inner one's, but how it is asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from lope.core.draft import Draft, Draw
from lope.core.prompt import Prompt
from lope.core.protocols import Ask, Drafter
from lope.core.sampling import Sampling
from lope.core.scores import Needs

D = TypeVar("D")
BesideT = TypeVar("BesideT", contravariant=True)
Propose = Callable[[Sequence[Ask[D]]], list[Draft]]


@dataclass(frozen=True, eq=False)
class AroundDrafter(Generic[D, BesideT]):
    """around(propose, asks): a draft for each ask, by way of the inner drafter's `propose`."""

    drafter: Drafter[D, BesideT]
    around: Callable[[Propose[D], Sequence[Ask[D]]], list[Draft]]

    @property
    def needs(self) -> Needs:
        """The inner drafter's."""
        return self.drafter.needs

    @property
    def sources(self) -> tuple[str, ...]:
        """The inner drafter's."""
        return self.drafter.sources

    def draws(self, greedy: bool) -> frozenset[Draw]:
        """The inner drafter's."""
        return self.drafter.draws(greedy)

    def sampling(self, request: Sampling) -> Sampling:
        """The inner drafter's."""
        return self.drafter.sampling(request)

    def open(self, prompt: Prompt, beside: BesideT) -> D:
        """A session of the inner drafter."""
        return self.drafter.open(prompt, beside)

    def fork(self, session: D, beside: BesideT) -> D:
        """An independent copy."""
        return self.drafter.fork(session, beside)

    def propose(self, asks: Sequence[Ask[D]]) -> list[Draft]:
        """A draft for each ask."""
        return self.around(self.drafter.propose, asks)
