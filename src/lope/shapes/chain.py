"""One token after another: the draft of Leviathan et al. 2023 (arXiv:2211.17192)."""

from dataclasses import dataclass

from lope.core import checks
from lope.core.budget import Budget
from lope.core.draft import Draw
from lope.core.protocols import Chance
from lope.shapes.counted import CountedSpread, without_replacement
from lope.shapes.levels import LevelGrowth


@dataclass(frozen=True)
class ChainShape:
    """A chain of `depth` tokens, each drawn from the draft law after the one before it; at temperature 0 the best."""

    depth: int = 5

    def __post_init__(self) -> None:
        checks.at_least("depth", self.depth, 1)

    def draws(self, greedy: bool) -> frozenset[Draw]:
        """Single children."""
        return frozenset({Draw.POINT if greedy else Draw.ONLY})

    def start(self, budget: Budget, chance: Chance, greedy: bool, position: int) -> LevelGrowth:
        """A chain that has only its root."""
        spread = CountedSpread(lambda depth, copies: 1, None if greedy else without_replacement, chance, position)
        return LevelGrowth(budget, self.depth, Draw.POINT if greedy else Draw.WITHOUT_REPLACEMENT, spread)
