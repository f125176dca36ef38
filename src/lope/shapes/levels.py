"""A draft that grows one level at a time: it keeps the tree and the laws; a `Spread` says which children come."""

from collections.abc import Sequence
from typing import Protocol

from lope.core.budget import Budget
from lope.core.draft import EMPTY, ROOT, Draft, Draw
from lope.core.prompt import Path
from lope.core.protocols import Laws
from lope.core.rows import Rows, stack


class Spread(Protocol):
    """Chooses the children of one level."""

    def children(self, laws: Laws, tree: Draft, depth: int, room: int) -> list[Path]:
        """For each frontier row its children's tokens in the order to be verified; at most `room` in all.

        `depth` is the children's. They are appended to `tree` row by row, so that the first one becomes node len(tree).
        How many there are must not depend on which tokens were drawn for them.
        """


class LevelGrowth:
    """One draft while it grows. `drawn` is how siblings were drawn: POINT, INDEPENDENT or WITHOUT_REPLACEMENT."""

    def __init__(self, budget: Budget, depth: int, drawn: Draw, spread: Spread) -> None:
        self._nodes = budget.nodes
        self._depth = min(depth, budget.depth)
        self._drawn = drawn
        self._spread = spread
        self._tree = EMPTY
        self._rows: list[Rows] = []
        self._level = 0
        self._frontier: Path = (ROOT,) if self._nodes > 0 and self._depth > 0 else ()

    @property
    def tree(self) -> Draft:
        """The tree so far, without laws."""
        return self._tree

    @property
    def frontier(self) -> Path:
        """The nodes to run next: those of the last level that may have children, copies left out."""
        return self._frontier

    def grow(self, laws: Laws, last: Sequence[bool]) -> None:
        """Draw the next level. Children of a `last` row are drawn but never expanded."""
        assert laws.nodes == self._frontier, "a growth is given the rows of its frontier"
        before = self._tree
        broods = self._spread.children(laws, before, self._level + 1, self._nodes - len(before))
        kept = [row for row, brood in enumerate(broods) if brood]
        self._append(laws, kept, [broods[row] for row in kept])
        self._level += 1
        if self._level == self._depth or len(self._tree) >= self._nodes:
            self._frontier = ()
            return
        stopped = {node for node, end in zip(laws.nodes, last, strict=True) if end}
        self._frontier = tuple(
            node
            for node in range(len(before), len(self._tree))
            if self._tree.parents[node] not in stopped and self._tree.firsts[node] == node
        )

    def draft(self) -> Draft:
        """The tree with the laws that its drawn nodes were drawn from."""
        tree = self._tree
        laws = stack(self._rows) if self._rows else None
        return Draft(tree.tokens, tree.parents, tree.draws, tree.source, laws, tree.law_of)

    def _append(self, laws: Laws, kept: list[int], broods: list[Path]) -> None:
        tree = self._tree
        law_of = [*tree.law_of, *(-1 for brood in broods for _ in brood)]
        if kept and self._drawn is not Draw.POINT:
            start = sum(len(rows) for rows in self._rows)
            self._rows.append(laws.rows if len(kept) == len(laws.nodes) else laws.rows.select(kept))
            for number, row in enumerate(kept):
                law_of[laws.nodes[row] + 1] = start + number
        tokens = tuple(token for brood in broods for token in brood)
        self._tree = Draft(
            tree.tokens + tokens,
            tree.parents + tuple(laws.nodes[row] for row, brood in zip(kept, broods, strict=True) for _ in brood),
            tree.draws + tuple(draw for brood in broods for draw in self._draws(len(brood))),
            tree.source + (0,) * len(tokens),
            None,
            tuple(law_of),
        )

    def _draws(self, siblings: int) -> tuple[Draw, ...]:
        only = siblings == 1 and self._drawn is not Draw.POINT
        return (Draw.ONLY if only else self._drawn,) * siblings
