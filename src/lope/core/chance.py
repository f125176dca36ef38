"""The two kinds of chance that a round runs on: keyed to the round, or shared with the target by position."""

import random

import torch
from torch import Tensor

from lope.core.noise import gumbel_noise, key


def _top(scores: Tensor, weights: Tensor, count: int) -> list[int]:
    """The columns of the `count` largest scores among those with a weight, in descending order."""
    count = min(count, int((weights > 0).sum()))
    if count == 1:
        return [int(scores.argmax())]
    return torch.topk(scores, count).indices.tolist() if count else []


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
        """Gumbel-top-k: an ordered sample without replacement (Vieira 2014; Kool et al. 2019)."""
        noise = self.gumbel(weights.shape[0], ids, position).to(weights.device)
        return _top(weights.to(torch.float64).log() + noise, weights, count)

    def gumbel(self, count: int, ids: Tensor | None, position: int) -> Tensor:
        """[count] independent Gumbel(0, 1) values in float64."""
        if self._vector is None:
            self._vector = torch.Generator().manual_seed(self._state)
        exponential = torch.empty(count, dtype=torch.float64).exponential_(generator=self._vector)
        return -exponential.log()


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
        """Gumbel-top-k with the noise of this position."""
        noise = self.gumbel(weights.shape[0], ids, position).to(weights.device)
        return _top(weights.to(torch.float64).log() + noise, weights, count)

    def gumbel(self, count: int, ids: Tensor | None, position: int) -> Tensor:
        """[count] Gumbel(0, 1) values in float64, those of tokens `ids` at this position."""
        tokens = torch.arange(count) if ids is None else ids.cpu()
        return gumbel_noise(self._seed, position, tokens)
