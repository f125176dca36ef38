"""Reads a Hugging Face `config.json` into a DecoderConfig."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lope.core import json_reader
from lope.core.errors import ModelError
from lope.models.lean.config import DecoderConfig
from lope.models.rope_scaling import rope_scaling


@dataclass(frozen=True)
class _Family:
    """What transformers assumes where a config.json of this architecture is silent, and the switches it cannot set."""

    context: int
    num_kv_heads: int | None = None
    head_dim: int | None = None
    qkv_bias: bool | None = None
    qk_norm: bool = False
    window: int | None = None
    window_is_optional: bool = False


_FAMILIES = {
    "LlamaForCausalLM": _Family(context=2048),
    "MistralForCausalLM": _Family(context=131072, num_kv_heads=8, qkv_bias=False, window=4096),
    "Qwen2ForCausalLM": _Family(context=32768, num_kv_heads=32, qkv_bias=True, window=4096, window_is_optional=True),
    "Qwen3ForCausalLM": _Family(
        context=32768, num_kv_heads=32, head_dim=128, qk_norm=True, window=4096, window_is_optional=True
    ),
}
SUPPORTED = tuple(_FAMILIES)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file. Raises ModelError for anything else."""
    try:
        value = json_reader.parsed(path.read_bytes())
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ModelError(f"{path}: is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path}: holds no JSON object")
    return value


def decoder_config(path: Path) -> DecoderConfig:
    """The decoder that a `config.json` describes.

    `rope_parameters` (transformers 5) and `rope_theta` with `rope_scaling` (before) are both read. A sliding window is
    not built: it caps the context instead, within which a window of that size changes nothing.
    Raises ModelError for another architecture, another activation, a RoPE scaling that is not fixed, a missing size.
    """
    values = _Values(str(path), read_json(path))
    architecture = next(iter(values.raw.get("architectures") or ()), None)
    if architecture not in _FAMILIES:
        raise ModelError(
            f"{path}: architecture {architecture or values.raw.get('model_type')!r} is not supported "
            f"(there are: {', '.join(SUPPORTED)}; hf:NAME runs any causal model of transformers)"
        )
    family = _FAMILIES[architecture]
    activation = values.raw.get("hidden_act", "silu")
    if activation != "silu":
        raise ModelError(f"{path}: hidden_act {activation!r} is not supported (silu is)")
    if values.raw.get("quantization_config"):
        raise ModelError(f"{path}: the weights are quantised; a GGUF file can be loaded so, a folder cannot")
    return _decoder(values, architecture, family)


def _decoder(values: "_Values", architecture: str, family: _Family) -> DecoderConfig:
    hidden, num_heads = values.size("hidden_size"), values.size("num_attention_heads")
    head_dim = values.size("head_dim", family.head_dim or max(hidden // num_heads, 1))
    num_kv_heads = values.size("num_key_value_heads", family.num_kv_heads or num_heads)
    if num_heads % num_kv_heads or head_dim % 2:
        raise ModelError(f"{values.where}: {num_heads} heads do not share {num_kv_heads} of {head_dim} numbers evenly")
    num_layers = values.size("num_hidden_layers")
    context = values.size("max_position_embeddings", family.context)
    rope = values.rope()
    theta = values.number("rope_theta", rope.get("rope_theta"), 10000.0)
    kind = str(rope.get("rope_type") or rope.get("type") or "default")
    scaling = rope_scaling(values.where, kind, rope, theta=theta, head_dim=head_dim, context=context)
    biased = values.flag("attention_bias")
    llama = architecture == "LlamaForCausalLM"
    return DecoderConfig(
        architecture=architecture,
        vocab_size=values.size("vocab_size"),
        hidden_size=hidden,
        intermediate_size=values.size("intermediate_size"),
        num_layers=num_layers,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        norm_eps=values.number("rms_norm_eps", values.raw.get("rms_norm_eps"), 1e-6),
        rope_theta=theta,
        context=min(context, values.window(family, num_layers) or context),
        tied=values.flag("tie_word_embeddings"),
        rope_factors=scaling.factors,
        rope_scale=scaling.scale,
        qkv_bias=biased if family.qkv_bias is None else family.qkv_bias,
        output_bias=biased and family.qkv_bias is None,
        mlp_bias=llama and values.flag("mlp_bias"),
        qk_norm=family.qk_norm,
    )


@dataclass(frozen=True)
class _Values:
    where: str
    raw: Mapping[str, Any]

    def size(self, name: str, default: int | None = None) -> int:
        value = self.raw.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ModelError(f"{self.where}: {name} must be a positive whole number, not {value!r}")
        return value

    def number(self, name: str, value: object, default: float) -> float:
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise ModelError(f"{self.where}: {name} must be a positive number, not {value!r}")
        return float(value)

    def flag(self, name: str) -> bool:
        return bool(self.raw.get(name))

    def rope(self) -> dict[str, Any]:
        """RoPE settings of both spellings in one: `rope_parameters` wins over `rope_theta` and `rope_scaling`."""
        older, newer = self.raw.get("rope_scaling") or {}, self.raw.get("rope_parameters") or {}
        if not isinstance(older, dict) or not isinstance(newer, dict):
            raise ModelError(f"{self.where}: rope_parameters must be an object")
        if any(isinstance(value, dict) for value in newer.values()):
            raise ModelError(f"{self.where}: RoPE settings that differ by layer are not supported")
        both = {**older, **newer}
        for name in ("rope_theta", "partial_rotary_factor"):
            if self.raw.get(name) is not None:
                both.setdefault(name, self.raw[name])
        if self.raw.get("original_max_position_embeddings") is not None:
            both["original_max_position_embeddings"] = self.raw["original_max_position_embeddings"]
        return both

    def window(self, family: _Family, num_layers: int) -> int | None:
        """How far back a layer looks, where one has a sliding window."""
        if family.window is None:
            return None
        if family.window_is_optional:
            kinds = self.raw.get("layer_types")
            some = "sliding_attention" in kinds if kinds else self.raw.get("max_window_layers", 28) < num_layers
            if not (self.raw.get("use_sliding_window") and some):
                return None
        if self.raw.get("sliding_window", family.window) is None:
            return None
        return self.size("sliding_window", family.window)
