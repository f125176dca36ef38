"""Where the rows of one sequence stand in a pass: its pending items as a chain, tree nodes under the last one."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lope.core.prompt import Path


@dataclass(frozen=True)
class Layout:
    """The rows that one sequence adds to a pass.

    start:     committed rows in the cache; keys [0, start) are everyone's.
    chain:     how many pending items run, at slots start, start + 1, ...; the last one is the root of the tree.
    ancestors: for each tree row the slots of its path from the root's child to itself; its own slot comes last.
    """

    start: int
    chain: int
    ancestors: tuple[Path, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows run."""
        return self.chain + len(self.ancestors)

    @property
    def context(self) -> int:
        """How many keys every tree row shares: all of the committed and the chain's."""
        return self.start + self.chain

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """How many keys each row sees, itself included: int64 [rows]. A row's position is one less."""
        chain = np.arange(self.start + 1, self.context + 1)
        tree = [self.context + len(path) for path in self.ancestors]
        return np.concatenate([chain, np.array(tree, dtype=np.int64)])

    @cached_property
    def slots(self) -> Path:
        """The slot that each row writes its key and value to."""
        return (*range(self.start, self.context), *(path[-1] for path in self.ancestors))

    @property
    def used(self) -> int:
        """One more than the highest slot in use."""
        return max(self.slots, default=self.start - 1) + 1

    def path_slots(self, first: NDArray[np.int64], width: int) -> NDArray[np.int64]:
        """[rows, width]: slots of each row's keys first[row], first[row] + 1, ... in path order; 0 beyond its end."""
        index = first[:, None] + np.arange(width)[None, :]
        slots = np.where(index < np.minimum(self.lengths, self.context)[:, None], index, 0)
        for row, path in enumerate(self.ancestors, start=self.chain):
            begin = self.context - int(first[row])
            low, high = max(begin, 0), min(begin + len(path), width)
            if high > low:
                slots[row, low:high] = path[low - begin : high - begin]
        return slots
