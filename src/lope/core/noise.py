"""Noise as a pure function of (seed, position, token id), so that any subset of tokens can ask for its own.

A counter-based hash (two rounds of the SplitMix64 finaliser, Steele, Lea & Flood 2014): a library generator would have
to produce the whole vocabulary to answer for fifty tokens, and its stream may change between versions.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def mix(value: int) -> int:
    """The SplitMix64 finaliser on one 64-bit integer."""
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * _FIRST) & _MASK
    value = ((value ^ (value >> 27)) * _SECOND) & _MASK
    return value ^ (value >> 31)


def key(*parts: int) -> int:
    """One 64-bit key from several integers; order matters."""
    state = 0
    for part in parts:
        state = mix(state ^ (part & _MASK))
    return state


def _mix_each(values: NDArray[np.uint64]) -> None:
    """`mix` on every element, in place (a fresh array for each step would cost three times as much)."""
    values += np.uint64(_GOLDEN)
    values ^= values >> np.uint64(30)
    values *= np.uint64(_FIRST)
    values ^= values >> np.uint64(27)
    values *= np.uint64(_SECOND)
    values ^= values >> np.uint64(31)


def exponential_noise(seed: int, position: int, ids: Tensor) -> Tensor:
    """Exponential(1) in float64, [C], for tokens `ids` int64 [C] at a context position."""
    tokens = ids.numpy().view(np.uint64)
    bits = tokens ^ np.uint64(key(seed, position))
    _mix_each(bits)
    bits ^= tokens
    _mix_each(bits)
    bits >>= np.uint64(12)  # 52 bits and a half: with 53 the last one would round to 1, whose logarithm is 0
    uniform = torch.from_numpy(bits.view(np.int64)).to(torch.float64).add_(0.5).mul_(2.0**-52)
    return uniform.log_().neg_()


def gumbel_noise(seed: int, position: int, ids: Tensor) -> Tensor:
    """Gumbel(0, 1) in float64, [C]: minus the logarithm of `exponential_noise`."""
    return exponential_noise(seed, position, ids).log_().neg_()
