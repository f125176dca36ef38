"""How much to draft this round, what came of it, and what a policy may look at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lope.core.prompt import Path

if TYPE_CHECKING:
    from lope.core.protocols import Stop

UNLIMITED = 1 << 30


@dataclass(frozen=True)
class Budget:
    """A hard cap: at most `nodes` nodes, at most `depth` deep. A shape's own settings are wishes below it.

    stop:   the rule that may end the draft earlier, or None for the engine's.
    source: the one source a drafter should use, or None for its own choice.
    ticket: what the policy needs to know its own choice again when it learns.
    """

    nodes: int
    depth: int
    stop: "Stop | None" = None
    source: int | None = None
    ticket: int = 0


@dataclass(frozen=True)
class Times:
    """Seconds that the whole packed round spent in each step."""

    propose: float
    score: float
    verify: float
    commit: float


@dataclass(frozen=True)
class Round:
    """What happened to one request in one round. No tensors: history must not keep laws alive.

    parents and source are the draft's; path is the accepted one; emitted counts tokens after cutting.
    cut: a stop or a limit cut the verdict short. prompt: the pass ran the prompt too.
    requests and rows: how many requests and target rows the packed round had.
    """

    request: int
    asked: Budget
    granted: Budget
    parents: Path
    source: Path
    path: Path
    emitted: int
    cut: bool
    prompt: bool
    requests: int
    rows: int
    times: Times


@dataclass(frozen=True)
class Situation:
    """What a policy may know of a request before it chooses: `length` context items, `room` for more, recent rounds."""

    request: int
    length: int
    room: int
    greedy: bool
    recent: Sequence[Round]
