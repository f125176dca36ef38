"""The two kinds of chance that a round runs on: keyed to the round, or shared with the target by position."""

import math
import random

import torch
from torch import Tensor

from lope.core.noise import exponential_noise, gumbel_noise, key


class KeyedChance:
    """Chance of one round, its stream set by (seed, purpose, root length): a retried round repeats itself."""

    def __init__(self, seed: int, purpose: int, length: int) -> None:
        state = key(seed, purpose, length)
        self._scalar = random.Random(state)
        self._state = state
        self._vector: torch.Generator | None = None

    def accept(self, probability: float) -> bool:
        """True with this probability."""
        return self._scalar.random() < probability

    def order(self, weights: Tensor, ids: Tensor | None, count: int, position: int) -> list[int]:
        """One column after the other, each by inverting the cumulative weight of what is left.

        The law of Gumbel-top-k from one uniform number a column, where noise would be needed for the whole vocabulary.
        """
        wheel = _Wheel(weights.to(torch.float64, copy=True))
        columns: list[int] = []
        while len(columns) < count and (left := wheel.left()) > 0.0:
            column = wheel.column(min(self._scalar.random() * left, math.nextafter(left, 0.0)))
            if wheel.take(column):
                columns.append(column)
            else:
                wheel.respace()  # a point within rounding of a gap: spin again
        return columns

    def gumbel(self, count: int, ids: Tensor | None, position: int) -> Tensor:
        """[count] independent Gumbel(0, 1) values in float64."""
        if self._vector is None:
            self._vector = torch.Generator().manual_seed(self._state)
        # torch's exponential_ takes 100 ns a value here, and 200 µs to start
        uniform = torch.rand(count, dtype=torch.float64, generator=self._vector).clamp_(min=2.0**-54)
        return uniform.log_().neg_().log_().neg_()


class SharedChance:
    """Chance that target and draft share: the noise of a token depends on (seed, position, token) alone.

    With it the target's token at a position is fixed by the seed, so the text is the same however it was drafted, and
    a draft that draws with the same noise agrees with it most often. Exact for `coupled` verification only.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def accept(self, probability: float) -> bool:
        """Never asked: with shared noise a token is accepted because it is the target's own."""
        raise AssertionError("a rule that accepts by chance cannot run on shared noise")

    def order(self, weights: Tensor, ids: Tensor | None, count: int, position: int) -> list[int]:
        """An exponential race: the smallest noise / weight first (Gumbel-top-k, with fewer logarithms)."""
        arrival = exponential_noise(self._seed, position, _tokens(weights.shape[0], ids)).to(weights.device) / weights
        if count == 1:
            columns = [int(arrival.argmin())]
        else:
            columns = torch.topk(arrival, min(count, len(arrival)), largest=False).indices.tolist()
        return [column for column in columns if weights[column] > 0]

    def gumbel(self, count: int, ids: Tensor | None, position: int) -> Tensor:
        """[count] Gumbel(0, 1) values in float64, those of tokens `ids` at this position."""
        return gumbel_noise(self._seed, position, _tokens(count, ids))


class _Wheel:
    """Cumulative weights out of which columns are taken: as gaps, until so little is left that they are summed anew."""

    def __init__(self, weights: Tensor) -> None:
        self._weights = weights
        self.respace()

    def respace(self) -> None:
        """Sum what is left anew; no gaps."""
        self._cumulative = self._weights.cumsum(0)
        self._total = self._left = float(self._cumulative[-1])
        self._gaps: list[tuple[float, float]] = []

    def left(self) -> float:
        """The weight of what is left."""
        if self._gaps and self._left < 1e-3 * self._total:
            self.respace()
        return self._left

    def column(self, point: float) -> int:
        """The column in which this much of the remaining weight is reached."""
        for start, mass in self._gaps:
            if point >= start:
                point += mass
        return min(int(torch.searchsorted(self._cumulative, point, right=True)), len(self._weights) - 1)

    def take(self, column: int) -> bool:
        """Take a column out; False where nothing is there."""
        mass = float(self._weights[column])
        if not mass > 0.0:
            return False
        start = float(self._cumulative[column - 1]) if column else 0.0
        self._weights[column] = 0.0
        self._gaps = sorted([*self._gaps, (start, mass)])
        self._left -= mass
        return True


def _tokens(count: int, ids: Tensor | None) -> Tensor:
    return torch.arange(count) if ids is None else ids.cpu()
