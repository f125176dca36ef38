"""Rotary positions (Su et al. 2021) as one complex product on adjacent pairs.

Checkpoints keep the two halves of a pair head_dim / 2 apart; their q and k rows are interleaved once when loaded. The
scores q·k do not change under a permutation that q and k share.
"""

import torch
from torch import Tensor

from lope.models.lean.config import DecoderConfig


def interleave(weight: Tensor, head_dim: int) -> Tensor:
    """Reorder rows [heads · head_dim, ...] of each head from (first halves, second halves) to adjacent pairs."""
    shape = weight.shape
    halves = weight.reshape(-1, 2, head_dim // 2, *shape[1:])
    return halves.transpose(1, 2).reshape(shape).contiguous()


class Rotary:
    """A table of rotations by position, made longer as contexts grow."""

    def __init__(self, config: DecoderConfig, device: torch.device) -> None:
        half = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device=device) / config.head_dim
        self._frequency = 1.0 / (config.rope_theta**half)
        if config.rope_factors is not None:
            self._frequency = self._frequency / torch.tensor(config.rope_factors, dtype=torch.float32, device=device)
        self._scale = config.rope_scale
        self._limit = config.context
        self._table = self._rotations(min(1024, self._limit))

    @property
    def device(self) -> torch.device:
        """Where the table lies."""
        return self._frequency.device

    def at(self, positions: Tensor, highest: int) -> Tensor:
        """Complex rotations [r, 1, head_dim / 2] for positions [r], none above `highest`."""
        return self.upto(highest + 1)[positions].unsqueeze(1)

    def upto(self, count: int) -> Tensor:
        """Complex rotations [at least `count`, head_dim / 2] of positions 0, 1, ..."""
        held = len(self._table)
        if count > held:
            self._table = self._rotations(min(max(2 * held, count), max(self._limit, count)))
        return self._table

    def _rotations(self, count: int) -> Tensor:
        angles = torch.outer(torch.arange(count, dtype=torch.float32, device=self._frequency.device), self._frequency)
        return torch.polar(torch.full_like(angles, self._scale), angles)


def rotate(x: Tensor, rotations: Tensor) -> None:
    """Rotate x [r, heads, head_dim] in place; float32 arithmetic whatever its dtype."""
    pairs = x.view(*x.shape[:-1], -1, 2)
    if x.dtype == torch.float32:
        torch.view_as_complex(pairs).mul_(rotations)
    else:
        pairs.copy_(torch.view_as_real(torch.view_as_complex(pairs.float()) * rotations))
