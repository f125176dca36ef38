"""Several chains drawn independently of each other, as in SpecInfer (Miao et al. 2023, arXiv:2305.09781) and SpecTr."""

from dataclasses import dataclass

from lope.core import checks
from lope.core.budget import Budget
from lope.core.draft import Draw
from lope.core.protocols import Chance
from lope.shapes.counted import CountedSpread, with_replacement
from lope.shapes.levels import LevelGrowth


@dataclass(frozen=True)
class IndependentShape:
    """`chains` i.i.d. chains of `depth` tokens; at temperature 0 chain i starts at the i-th best token.

    Chains that agree so far stay apart as copies in draw order (merging them would bias verification); what follows
    a copy hangs under its first. Shared noise (`coupled`) draws the same chain each time.
    """

    chains: int = 2
    depth: int = 4

    def __post_init__(self) -> None:
        checks.at_least("chains", self.chains, 1)
        checks.at_least("depth", self.depth, 1)

    def draws(self, greedy: bool) -> frozenset[Draw]:
        """Siblings with replacement at the root and below copies; single children elsewhere."""
        if greedy:
            return frozenset({Draw.POINT})
        return frozenset({Draw.ONLY} | ({Draw.INDEPENDENT} if self.chains > 1 else set()))

    def start(self, budget: Budget, chance: Chance, greedy: bool, position: int) -> LevelGrowth:
        """Chains that have only their common root."""
        spread = CountedSpread(
            lambda depth, copies: self.chains if depth == 1 else copies,
            None if greedy else with_replacement,
            chance,
            position,
        )
        return LevelGrowth(budget, self.depth, Draw.POINT if greedy else Draw.INDEPENDENT, spread)
