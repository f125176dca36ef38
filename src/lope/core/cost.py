"""What rounds cost on one machine, as data: `engine` measures it, policies and shapes read it."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lope.core.errors import SettingError


@dataclass(frozen=True)
class CostCurve:
    """Seconds by size, never falling: linear between sizes, flat below the first, the last slope beyond the last.

    A single size is taken for proportional cost. Raises SettingError for anything that is no such curve.
    """

    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.sizes or len(self.sizes) != len(self.seconds):
            raise SettingError(f"a cost curve has as many seconds as sizes, not {len(self.seconds)}, {len(self.sizes)}")
        if self.sizes[0] < 1 or any(b <= a for a, b in pairwise(self.sizes)):
            raise SettingError(f"the sizes of a cost curve grow from 1 or more: {self.sizes}")
        falls = any(b < a for a, b in pairwise(self.seconds))
        if falls or not all(math.isfinite(value) and value >= 0.0 for value in self.seconds):
            raise SettingError(f"the seconds of a cost curve are finite and never fall: {self.seconds}")

    @classmethod
    def smoothed(cls, sizes: Sequence[int], seconds: Sequence[float]) -> "CostCurve":
        """The never falling curve nearest to noisy seconds in least squares (pool adjacent violators, Ayer 1955)."""
        pools: list[tuple[float, int]] = []
        for value in seconds:
            mean, count = value, 1
            while pools and pools[-1][0] > mean:
                before, weight = pools.pop()
                mean, count = (mean * count + before * weight) / (count + weight), count + weight
            pools.append((mean, count))
        return cls(tuple(sizes), tuple(mean for mean, count in pools for _ in range(count)))

    def at(self, size: int) -> float:
        """Seconds for this size."""
        sizes, seconds = self.sizes, self.seconds
        if size <= sizes[0]:
            return seconds[0]
        if len(sizes) == 1:
            return seconds[0] * size / sizes[0]
        right = min(bisect_right(sizes, size), len(sizes) - 1)
        left = right - 1
        slope = (seconds[right] - seconds[left]) / (sizes[right] - sizes[left])
        return seconds[left] + slope * (size - sizes[left])


@dataclass(frozen=True)
class Calibration:
    """Costs of one target with one drafter on one machine.

    contexts: context lengths at which passes were measured, ascending.
    passes:   for each of them the seconds of a target pass by its rows.
    overhead: seconds of a round beside the pass and the drafting.
    drafting: seconds of one draft by its depth, or None where the drafter drafts nothing.
    nodes:    nodes[d] is how many nodes a draft d deep has; it ends at the deepest draft, so (0,) drafts nothing.
    """

    contexts: tuple[int, ...]
    passes: tuple[CostCurve, ...]
    overhead: float
    drafting: CostCurve | None = None
    nodes: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        if not self.contexts or len(self.contexts) != len(self.passes):
            raise SettingError("a calibration has one cost curve for each context length, and at least one")
        if any(b <= a for a, b in pairwise(self.contexts)):
            raise SettingError(f"the context lengths of a calibration grow: {self.contexts}")
        if not math.isfinite(self.overhead) or self.overhead < 0.0:
            raise SettingError(f"the overhead of a round is a number of seconds, not {self.overhead}")
        if self.nodes[:1] != (0,) or any(b <= a for a, b in pairwise(self.nodes)):
            raise SettingError(f"deeper drafts have more nodes, from 0 at depth 0: {self.nodes}")

    @property
    def deepest(self) -> int:
        """Depth of the deepest draft."""
        return len(self.nodes) - 1

    def seconds(self, rows: int, context: int) -> float:
        """Seconds of a target pass of so many rows at this context length (linear in it, never falling)."""
        contexts, passes = self.contexts, self.passes
        if context <= contexts[0] or len(contexts) == 1:
            return passes[0].at(rows)
        right = min(bisect_right(contexts, context), len(contexts) - 1)
        left = right - 1
        low, high = passes[left].at(rows), passes[right].at(rows)
        return low + max(0.0, high - low) / (contexts[right] - contexts[left]) * (context - contexts[left])

    def draft_seconds(self, depth: int) -> float:
        """Seconds of drafting so deep."""
        return 0.0 if depth < 1 or self.drafting is None else self.drafting.at(depth)

    def speed(self, nodes: int, depth: int, acceptance: Sequence[float], context: int) -> float:
        """Expected tokens per second with that budget every round, one request.

        acceptance[k - 1] is P(position k accepted | position k - 1 accepted); positions beyond are never accepted.
        The time is that of Sequoia's choice of a tree (Chen et al. 2024, arXiv:2402.12374) with drafting and overhead.
        """
        cost = self.draft_seconds(depth) + self.seconds(1 + nodes, context) + self.overhead
        return expected_tokens(acceptance, depth) / cost

    def best(self, acceptance: Sequence[float], context: int) -> tuple[int, int]:
        """(nodes, depth) of the fixed budget that is fastest; (0, 0) where plain decoding is."""
        depths = range(self.deepest + 1)
        depth = max(depths, key=lambda depth: self.speed(self.nodes[depth], depth, acceptance, context))
        return self.nodes[depth], depth


def expected_tokens(acceptance: Sequence[float], depth: int) -> float:
    """Tokens of one round: the accepted ones and one more."""
    total = chance = 1.0
    for conditional in acceptance[:depth]:
        chance *= conditional
        total += chance
    return total
