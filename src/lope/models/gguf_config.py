"""Reads the metadata of a GGUF file into a DecoderConfig."""

from typing import Any

import numpy as np
from torch import Tensor

from lope.core.errors import ModelError
from lope.models.gguf_header import GgufHeader
from lope.models.lean.config import DecoderConfig
from lope.models.rope_scaling import RopeScaling, rope_scaling

# GGUF architecture -> the Hugging Face one; Mistral models are stored as `llama`
ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}


def gguf_architecture(header: GgufHeader) -> str:
    """The GGUF name of the architecture. Raises ModelError that lists the ones that can be loaded."""
    name: str = header.get("general.architecture", str)
    if name not in ARCHITECTURES:
        raise ModelError(
            f"{header.path}: GGUF architecture {name!r} is not supported (there are: {', '.join(ARCHITECTURES)})"
        )
    return name


def permuted_tensors(header: GgufHeader) -> dict[str, int]:
    """Stored name ending -> number of heads, of the tensors whose rows are interleaved: q and k of `llama`."""
    if gguf_architecture(header) != "llama":
        return {}
    num_heads, num_kv_heads = _heads(header, "llama.")
    return {
        f"attn_{name}.{kind}": n for name, n in (("q", num_heads), ("k", num_kv_heads)) for kind in ("weight", "bias")
    }


def decoder_config(header: GgufHeader, rope_frequencies: Tensor | None) -> DecoderConfig:
    """The decoder that the metadata describe.

    rope_frequencies: the tensor `rope_freqs.weight` [head_dim / 2], which holds Llama 3's scaling, or None.
    Raises ModelError for another architecture and for missing or impossible sizes.
    """
    name = gguf_architecture(header)
    prefix = name + "."
    sizes = {key: _positive(header, prefix + key) for key in ("embedding_length", "feed_forward_length", "block_count")}
    num_heads, num_kv_heads = _heads(header, prefix)
    head_dim = int(header.get(prefix + "attention.key_length", int, max(sizes["embedding_length"] // num_heads, 1)))
    rotated = header.get(prefix + "rope.dimension_count", int, head_dim)
    if num_heads % num_kv_heads or head_dim < 2 or head_dim % 2 or rotated != head_dim:
        raise ModelError(
            f"{header.path}: {num_heads} heads of {head_dim}, {num_kv_heads} for keys, {rotated} rotated: not supported"
        )
    if header.get("split.count", int, 1) > 1:
        raise ModelError(f"{header.path}: is one part of several; join them first (llama-gguf-split --merge)")
    if header.get(prefix + "expert_count", int, 0):
        raise ModelError(f"{header.path}: mixtures of experts are not supported")
    context = _positive(header, prefix + "context_length")
    window = header.get(prefix + "attention.sliding_window", int, 0)
    theta = _decimal(header.get(prefix + "rope.freq_base", float, 10000.0))
    scaling = _scaling(header, prefix, rope_frequencies, theta=theta, head_dim=head_dim, context=context)
    embedding = header.tensors.get("token_embd.weight")
    if embedding is None:
        raise ModelError(f"{header.path}: tensor token_embd.weight is missing")
    return DecoderConfig(
        architecture=ARCHITECTURES[name],
        vocab_size=embedding.shape[0],
        hidden_size=sizes["embedding_length"],
        intermediate_size=sizes["feed_forward_length"],
        num_layers=sizes["block_count"],
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        norm_eps=_decimal(header.get(prefix + "attention.layer_norm_rms_epsilon", float)),
        rope_theta=theta,
        context=min(context, window or context),
        tied="output.weight" not in header.tensors,
        rope_factors=scaling.factors,
        rope_scale=scaling.scale,
        qkv_bias="blk.0.attn_q.bias" in header.tensors,
        output_bias="blk.0.attn_output.bias" in header.tensors,
        mlp_bias="blk.0.ffn_gate.bias" in header.tensors,
        qk_norm="blk.0.attn_q_norm.weight" in header.tensors,
    )


def _positive(header: GgufHeader, key: str) -> int:
    value: int = header.get(key, int)
    if value < 1:
        raise ModelError(f"{header.path}: {key} is {value}, not a positive number")
    return value


def _decimal(value: float) -> float:
    """The shortest decimal that is this float32: 1e-5 where the file can only say 9.99999975e-06."""
    return float(str(np.float32(value)))


def _heads(header: GgufHeader, prefix: str) -> tuple[int, int]:
    num_heads = _positive(header, prefix + "attention.head_count")
    num_kv_heads: int = header.get(prefix + "attention.head_count_kv", int, num_heads)
    if num_kv_heads < 1:
        raise ModelError(f"{header.path}: {prefix}attention.head_count_kv is {num_kv_heads}")
    return num_heads, num_kv_heads


def _scaling(
    header: GgufHeader, prefix: str, frequencies: Tensor | None, *, theta: float, head_dim: int, context: int
) -> RopeScaling:
    if frequencies is not None:
        if frequencies.shape != (head_dim // 2,) or not bool((frequencies > 0).all()):
            raise ModelError(f"{header.path}: rope_freqs.weight must hold {head_dim // 2} positive numbers")
        factors = tuple(float(value) for value in frequencies)
        return RopeScaling(factors if any(value != 1.0 for value in factors) else None)
    kind = header.get(prefix + "rope.scaling.type", str, "none")
    older = header.get(prefix + "rope.scale_linear", float, 1.0)
    if kind == "none" and older != 1.0:
        return rope_scaling(
            str(header.path), "linear", {"factor": older}, theta=theta, head_dim=head_dim, context=context
        )
    names = {"factor": "factor", "original_context_length": "original_max_position_embeddings"}
    settings: dict[str, Any] = {
        hugging_face: header.metadata[f"{prefix}rope.scaling.{stored}"]
        for stored, hugging_face in names.items()
        if f"{prefix}rope.scaling.{stored}" in header.metadata
    }
    kind = "default" if kind == "none" else kind
    return rope_scaling(str(header.path), kind, settings, theta=theta, head_dim=head_dim, context=context)
