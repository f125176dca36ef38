"""Gumbel noise as a pure function of (seed, position, token id), so that any subset of tokens can ask for its own.

A counter-based hash (two rounds of the SplitMix64 finaliser, Steele, Lea & Flood 2014): a library generator would have
to produce the whole vocabulary to answer for fifty tokens, and its stream may change between versions.
"""

import torch
from torch import Tensor

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _signed(value: int) -> int:
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def mix(value: int) -> int:
    """The SplitMix64 finaliser on one 64-bit integer."""
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def key(*parts: int) -> int:
    """One 64-bit key from several integers; order matters."""
    state = 0
    for part in parts:
        state = mix(state ^ (part & _MASK))
    return state


def _shift(values: Tensor, bits: int) -> Tensor:
    """Logical shift right of int64 seen as unsigned."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)


def _mix_each(values: Tensor) -> Tensor:
    values = values + _signed(_GOLDEN)
    values = (values ^ _shift(values, 30)) * _signed(0xBF58476D1CE4E5B9)
    values = (values ^ _shift(values, 27)) * _signed(0x94D049BB133111EB)
    return values ^ _shift(values, 31)


def gumbel_noise(seed: int, position: int, ids: Tensor) -> Tensor:
    """Gumbel(0, 1) in float64, [C], for tokens `ids` int64 [C] at a context position."""
    bits = _mix_each(_mix_each(ids ^ _signed(key(seed, position))) ^ ids)
    uniform = (_shift(bits, 11).to(torch.float64) + 0.5) * 2.0**-53
    return -torch.log(-torch.log(uniform))
