"""The same budget every round."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from lope.core import checks
from lope.core.budget import UNLIMITED, Budget, Round, Situation
from lope.core.cost import Calibration


@dataclass(frozen=True)
class FixedPolicy:
    """At most `nodes` nodes and `depth` levels a round; None leaves it to the wishes of shape and drafter.

    nodes 0 drafts nothing.
    """

    nodes: int | None = None
    depth: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("nodes", self.nodes), ("depth", self.depth)):
            if value is not None:
                checks.at_least(name, value, 0)

    def attach(self, calibration: Callable[[], Calibration]) -> Self:
        """Itself."""
        return self

    def choose(self, situations: Sequence[Situation]) -> list[Budget]:
        """The same for each request."""
        nodes = UNLIMITED if self.nodes is None else self.nodes
        depth = UNLIMITED if self.depth is None else self.depth
        return [Budget(nodes, depth)] * len(situations)

    def learn(self, rounds: Sequence[Round]) -> None:
        """Nothing to learn."""
