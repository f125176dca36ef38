"""RSD with constant branching: Jeon et al. 2024 (arXiv:2402.14160), RSD-C; siblings by Gumbel-top-k (Vieira 2014)."""

from dataclasses import dataclass

from lope.core import checks
from lope.core.budget import Budget
from lope.core.draft import Draw
from lope.core.errors import SettingError
from lope.core.protocols import Chance
from lope.shapes.counted import CountedSpread, without_replacement
from lope.shapes.levels import LevelGrowth


@dataclass(frozen=True)
class RsdCShape:
    """Every node of level l has branching[l] children, drawn without replacement; at temperature 0 the best ones.

    A budget below the wish takes elder siblings first: every node of a level its first child before any its second.
    """

    branching: tuple[int, ...] = (3, 2, 1)

    def __post_init__(self) -> None:
        if not self.branching:
            raise SettingError("branching must name at least one level, such as 3-2-1")
        for count in self.branching:
            checks.at_least("branching", count, 1)

    def draws(self, greedy: bool) -> frozenset[Draw]:
        """Several children without replacement; single ones where the branching, the budget or the support is 1."""
        if greedy:
            return frozenset({Draw.POINT})
        several = {Draw.WITHOUT_REPLACEMENT} if max(self.branching) > 1 else set()
        return frozenset({Draw.ONLY} | several)

    def start(self, budget: Budget, chance: Chance, greedy: bool, position: int) -> LevelGrowth:
        """A tree that has only its root."""
        spread = CountedSpread(
            lambda depth, copies: self.branching[depth - 1], None if greedy else without_replacement, chance, position
        )
        return LevelGrowth(budget, len(self.branching), Draw.POINT if greedy else Draw.WITHOUT_REPLACEMENT, spread)
