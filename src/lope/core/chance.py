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

        The law of Gumbel-top-k from one uniform number a column: noise for a whole vocabulary costs 20 times more.
        """
        left = weights.to(torch.float64, copy=True)
        columns: list[int] = []
        for _ in range(count):
            cumulative = left.cumsum(0)
            total = float(cumulative[-1])
            if not total > 0.0:
                break
            point = min(self._scalar.random() * total, math.nextafter(total, 0.0))
            columns.append(int(torch.searchsorted(cumulative, point, right=True)))
            left[columns[-1]] = 0.0
        return columns

    def gumbel(self, count: int, ids: Tensor | None, position: int) -> Tensor:
        """[count] independent Gumbel(0, 1) values in float64."""
        if self._vector is None:
            self._vector = torch.Generator().manual_seed(self._state)
        exponential = torch.empty(count, dtype=torch.float64).exponential_(generator=self._vector)
        return exponential.log_().neg_()


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


def _tokens(count: int, ids: Tensor | None) -> Tensor:
    return torch.arange(count) if ids is None else ids.cpu()
