"""RoPE scaling that is fixed when the model is loaded: divisors of the rotary frequencies, and a factor on cos and sin.

Formulas and setting names as in transformers' `modeling_rope_utils`: linear (kaiokendev 2023), llama3 (Llama 3.1), YaRN
(Peng et al. 2023, arXiv:2309.00071).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lope.core.errors import ModelError

SUPPORTED = ("default", "linear", "llama3", "yarn", "longrope with equal factors")
_KINDS = ("default", "linear", "llama3", "yarn", "longrope")


@dataclass(frozen=True)
class RopeScaling:
    """factors: head_dim / 2 divisors of theta^(-2i/d), or None for none. scale: factor on cos and sin."""

    factors: tuple[float, ...] | None = None
    scale: float = 1.0


def rope_scaling(
    where: str, kind: str, settings: Mapping[str, Any], *, theta: float, head_dim: int, context: int
) -> RopeScaling:
    """The scaling of one kind. settings: as in config.json; context: `max_position_embeddings`. Raises ModelError."""
    if kind not in _KINDS:
        raise ModelError(f"{where}: RoPE scaling {kind!r} is not supported (there are: {', '.join(SUPPORTED)})")
    if settings.get("partial_rotary_factor") not in (None, 1, 1.0):
        raise ModelError(f"{where}: RoPE over a part of each head (partial_rotary_factor) is not supported")
    if kind == "default":
        return RopeScaling()
    if theta <= 1:
        raise ModelError(f"{where}: RoPE scaling {kind!r} needs rope_theta above 1, not {theta:g}")
    numbers = _Settings(where, kind, settings)
    frequencies = [theta ** (-2 * pair / head_dim) for pair in range(head_dim // 2)]
    if kind == "linear":
        return RopeScaling((numbers.get("factor"),) * (head_dim // 2))
    if kind == "llama3":
        return RopeScaling(_llama3(numbers, frequencies, context))
    if kind == "longrope":
        return _longrope(numbers, head_dim, context)
    return _yarn(numbers, theta, head_dim, context)


@dataclass(frozen=True)
class _Settings:
    where: str
    kind: str
    values: Mapping[str, Any]

    def get(self, name: str, default: float | None = None) -> float:
        value = self.values.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            raise ModelError(f"{self.where}: RoPE scaling {self.kind!r} needs a positive {name}, not {value!r}")
        return float(value)


def _llama3(numbers: _Settings, frequencies: list[float], context: int) -> tuple[float, ...]:
    factor, low, high = numbers.get("factor"), numbers.get("low_freq_factor"), numbers.get("high_freq_factor")
    original = numbers.get("original_max_position_embeddings", context)
    factors = []
    for frequency in frequencies:
        wavelength = 2 * math.pi / frequency
        if wavelength < original / high:
            factors.append(1.0)
        elif wavelength > original / low:
            factors.append(factor)
        else:
            smooth = (original / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return tuple(factors)


def _longrope(numbers: _Settings, head_dim: int, context: int) -> RopeScaling:
    """Divisors given one by one. Where short and long ones differ, they depend on the length and are not fixed."""
    short, long = numbers.values.get("short_factor"), numbers.values.get("long_factor")
    numeric = isinstance(short, list) and all(isinstance(value, int | float) and value > 0 for value in short)
    if not isinstance(short, list) or not numeric or len(short) != head_dim // 2 or short != long:
        raise ModelError(
            f"{numbers.where}: RoPE scaling 'longrope' is supported only with equal short and long factors"
        )
    if numbers.values.get("attention_factor") is not None:
        return RopeScaling(tuple(short), numbers.get("attention_factor"))
    original = numbers.get("original_max_position_embeddings", context)
    factor = numbers.get("factor", context / original)
    scale = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))
    return RopeScaling(tuple(short), scale)


def _yarn(numbers: _Settings, theta: float, head_dim: int, context: int) -> RopeScaling:
    original = numbers.get("original_max_position_embeddings", context)
    factor = numbers.get("factor", context / original)

    def correction(rotations: float) -> float:
        """The dimension that turns this often over the original context."""
        return head_dim * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    low, high = correction(numbers.get("beta_fast", 32)), correction(numbers.get("beta_slow", 1))
    if numbers.values.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    width = high - low if high != low else 0.001
    ramp = [min(max((pair - low) / width, 0.0), 1.0) for pair in range(head_dim // 2)]
    factors = tuple(1 / (share / factor + 1 - share) for share in ramp)
    return RopeScaling(factors, _yarn_scale(numbers, factor))


def _yarn_scale(numbers: _Settings, factor: float) -> float:
    if numbers.values.get("attention_factor") is not None:
        return numbers.get("attention_factor")

    def scale(multiplier: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * multiplier * math.log(factor) + 1.0

    if numbers.values.get("mscale") and numbers.values.get("mscale_all_dim"):
        return scale(numbers.get("mscale")) / scale(numbers.get("mscale_all_dim"))
    return scale(1.0)
