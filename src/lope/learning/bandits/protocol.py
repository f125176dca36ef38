"""The door through which a decoding loop, or any other, uses a bandit."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

Context = Sequence[float] | None


class Bandit(Protocol):
    """Chooses arms and learns what they were worth. Several plays may be waiting for their reward at once."""

    def choose(self, context: Context = None) -> int:
        """The arm to play now; the play waits until `learn` or `withdraw` is called for that arm."""
        ...

    def learn(self, arm: int, reward: float) -> None:
        """The reward, in [0, 1], of the oldest waiting play of `arm`; UsageError for anything else."""
        ...

    def withdraw(self, arm: int) -> None:
        """The newest waiting play of `arm` will bring no reward (it was clamped, cut short or cancelled)."""
        ...


class Remembered(Protocol):
    """A bandit whose state outlives its process."""

    def save(self) -> dict[str, Any]:
        """Everything, its randomness included, as plain JSON values: a restored bandit continues bit by bit."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the bandit that was saved. UsageError where it was of another kind, setting or number of arms."""
        ...

    def merge(self, other: Self, since: Mapping[str, Any] | None = None) -> None:
        """Add what `other` learned; `since` is a state that both began from, so that it is not counted twice."""
        ...
