"""A tree of guesses: the tokens, who hangs under whom, and the law that each was drawn from."""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from lope.core.prompt import Path
from lope.core.rows import Rows

ROOT = -1


class Draw(Enum):
    """How a node was chosen among its siblings.

    POINT                named without chance (a retrieved token, the k-th best logit)
    ONLY                 the single drawn child of its parent: every sampling rule treats it alike
    INDEPENDENT          drawn with replacement: i.i.d. with its siblings
    WITHOUT_REPLACEMENT  drawn from what its elder siblings left over
    """

    POINT = "point"
    ONLY = "only"
    INDEPENDENT = "independent"
    WITHOUT_REPLACEMENT = "without_replacement"


@dataclass(frozen=True, eq=False)
class Draft:
    """A token tree under the last committed token.

    tokens:  n ids, parents before children; siblings in the order in which they must be verified, drawn ones first.
    parents: parents[i] < i, or ROOT for children of the last committed token.
    draws:   how each node was chosen.
    source:  which of the drafter's sources proposed it.
    laws:    [k, C] probability rows that drawn children were drawn from (exactly those, in the draft's own precision).
    law_of:  law_of[parent + 1] is the row of `laws` for that parent's drawn children, or -1; [n + 1].
    """

    tokens: Path
    parents: Path
    draws: tuple[Draw, ...]
    source: Path
    laws: Rows | None = None
    law_of: Path = (-1,)

    def __len__(self) -> int:
        return len(self.tokens)

    def __bool__(self) -> bool:
        raise TypeError("an empty draft is still a draft: ask for its length")

    @cached_property
    def firsts(self) -> Path:
        """For each node its eldest sibling with the same token: itself unless a copy. Children hang under firsts."""
        seen: dict[tuple[int, int], int] = {}
        return tuple(seen.setdefault(key, node) for node, key in enumerate(zip(self.parents, self.tokens, strict=True)))

    @cached_property
    def children(self) -> tuple[Path, ...]:
        """children[parent + 1]: the nodes under a parent, in verification order."""
        below: list[list[int]] = [[] for _ in range(len(self.tokens) + 1)]
        for node, parent in enumerate(self.parents):
            below[parent + 1].append(node)
        return tuple(tuple(nodes) for nodes in below)

    @cached_property
    def depths(self) -> Path:
        """The depth of each node; children of the root have depth 1."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 if parent == ROOT else depths[parent] + 1)
        return tuple(depths)

    def path(self, node: int) -> Path:
        """The nodes from the root's child down to `node`, both included; () for ROOT."""
        nodes: list[int] = []
        while node != ROOT:
            nodes.append(node)
            node = self.parents[node]
        return tuple(reversed(nodes))

    def words(self, node: int) -> Path:
        """The tokens along `path(node)`."""
        return tuple(self.tokens[step] for step in self.path(node))


EMPTY = Draft((), (), (), ())


def chain(tokens: Path, source: int = 0) -> Draft:
    """A chain of tokens named without chance."""
    count = len(tokens)
    return Draft(
        tokens, tuple(range(-1, count - 1)), (Draw.POINT,) * count, (source,) * count, None, (-1,) * (count + 1)
    )
