"""What can be measured: anything that answers a conversation and says how long each step took."""

from typing import Protocol

from lope.bench.record import Turn
from lope.bench.suite import Item
from lope.core.errors import RunError


class SystemFailedError(RunError):
    """A system that died, hangs or fails; the others go on without it."""


class System(Protocol):
    """One column of the comparison."""

    @property
    def name(self) -> str:
        """What it is called in results and reports."""

    def answer(self, item: Item, max_new_tokens: int) -> tuple[Turn, ...]:
        """Answer every turn, each at most so many tokens. Raises SystemFailedError, or another LopeError."""

    def peak_memory(self) -> int | None:
        """Bytes that its process held at most during the last answer; None where nobody knows."""

    def close(self) -> None:
        """Give everything back."""
