"""Children whose number is known before they are drawn, whatever the tokens: chains, RSD-C, independent chains."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from lope.core.draft import ROOT, Draft
from lope.core.prompt import Path
from lope.core.protocols import Chance, Laws
from lope.shapes.points import best

Pick = Callable[[Chance, Tensor, Tensor | None, int, int], list[int]]


def without_replacement(chance: Chance, weights: Tensor, ids: Tensor | None, count: int, position: int) -> list[int]:
    """Columns drawn one from what the others left over: Gumbel-top-k."""
    return chance.order(weights, ids, count, position)


def with_replacement(chance: Chance, weights: Tensor, ids: Tensor | None, count: int, position: int) -> list[int]:
    """Columns drawn each from the whole law."""
    return [column for _ in range(count) for column in chance.order(weights, ids, 1, position)]


def share(wishes: Sequence[int], room: int) -> list[int]:
    """What each row gets of `room`: every row its first child, then every row its second, ... (prunes by rank)."""
    counts = [0] * len(wishes)
    for rank in range(max(wishes, default=0)):
        for row, wish in enumerate(wishes):
            if wish > rank and room > 0:
                counts[row] += 1
                room -= 1
    return counts


@dataclass(frozen=True, eq=False)
class CountedSpread:
    """wish(depth, copies): how many children a node wishes at that depth, having `copies` copies (itself included).

    pick draws them (None at temperature 0: the best ones are taken); position is that of a child of the root.
    """

    wish: Callable[[int, int], int]
    pick: Pick | None
    chance: Chance
    position: int

    def children(self, laws: Laws, tree: Draft, depth: int, room: int) -> list[Path]:
        """Draw for each row as many children as it wishes and the budget leaves it."""
        copies = [1 if node == ROOT else tree.firsts.count(node) for node in laws.nodes]
        counts = share([self.wish(depth, count) for count in copies], room)
        if self.pick is None:
            return best(laws.rows, counts)
        weights = laws.rows.values.cpu()
        ids = None if laws.rows.ids is None else laws.rows.ids.cpu().expand_as(weights)
        broods: list[Path] = []
        for row, count in enumerate(counts):
            held = None if ids is None else ids[row]
            columns = self.pick(self.chance, weights[row], held, count, self.position + depth - 1) if count else []
            broods.append(tuple(columns if held is None else held[columns].tolist()))
        return broods
