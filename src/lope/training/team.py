"""The processes that train together, one for each device: each has batches of its own, all make the same steps."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeVar

from torch import Tensor, nn

from lope.core.errors import LopeError, UsageError
from lope.core.registry import Room

T = TypeVar("T")
# imported where there are several processes: nobody else needs accelerate
_TEAMS = Room("team", {"accelerated": "lope.training.accelerated:Accelerated"})


class Team(Protocol):
    """What a process must know of the others. Every process calls the same members in the same order, or all wait."""

    @property
    def rank(self) -> int:
        """Which one this is, from 0; process 0 alone writes and speaks."""

    @property
    def size(self) -> int:
        """How many there are."""

    def device(self, asked: str) -> str:
        """Where this one works. Raises UsageError where what was asked for cannot be had."""

    def average(self, parameters: Iterable[nn.Parameter]) -> None:
        """Make every gradient its mean over the processes; one that a process lacks is 0 there."""

    def total(self, tensor: Tensor) -> Tensor:
        """The sum over the processes."""

    def first(self, value: T) -> T:
        """Process 0's value."""

    def together(self) -> AbstractContextManager[None]:
        """A LopeError of one process in here is raised in all, at its end. Inside, nobody waits for others."""

    def leave(self) -> None:
        """The work is done."""


@contextmanager
def raised_in_all(gather: Callable[[LopeError | None], list[LopeError | None]]) -> Iterator[None]:
    """`Team.together` by way of `gather`, which tells all what each has: the first error is raised."""
    own: LopeError | None = None
    try:
        yield
    except LopeError as error:
        own = error
    errors = [error for error in gather(own) if error is not None]
    if errors:
        raise errors[0]


@dataclass(frozen=True)
class Alone:
    """One process, which needs nobody."""

    rank = 0
    size = 1

    def device(self, asked: str) -> str:
        """Any."""
        return asked

    def average(self, parameters: Iterable[nn.Parameter]) -> None:
        """Its own gradients are the mean."""

    def total(self, tensor: Tensor) -> Tensor:
        """Its own."""
        return tensor

    def first(self, value: T) -> T:
        """Its own."""
        return value

    def together(self) -> AbstractContextManager[None]:
        """Errors are raised where they occur."""
        return nullcontext()

    def leave(self) -> None:
        """Nobody is left behind."""


ALONE = Alone()


def team_here() -> Team:
    """By what launchers (`accelerate launch`, torchrun) set in the environment.

    Raises UsageError where accelerate is not there, and where it was asked for several processes and began one.
    """
    if "WORLD_SIZE" not in os.environ and {"ACCELERATE_USE_CPU", "MASTER_ADDR"} <= os.environ.keys():
        raise UsageError(
            "accelerate has begun one process and not several, as it does where it finds no GPUs: "
            "torchrun --nproc_per_node 2 -m lope ... begins two on the CPU"
        )
    team: Team = ALONE if processes_here() == 1 else _TEAMS.part("accelerated")()
    return team


def processes_here() -> int:
    """How many processes a launcher has begun. Raises UsageError where the environment says no number."""
    size = os.environ.get("WORLD_SIZE") or "1"
    if not size.isdecimal() or int(size) < 1:
        raise UsageError(f"WORLD_SIZE in the environment is how many processes train together, not {size!r}")
    return int(size)
