"""The forward pass of the Llama family (Touvron et al. 2023), packed over the rows of many sequences.

d hidden size, r rows of the pass, h query heads, k key-value heads, w head_dim, g = h / k.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from lope.core.errors import ModelError
from lope.models.lean.attention import Attention, PathOrder, SlotOrder, padded_group
from lope.models.lean.cache import SequenceCache
from lope.models.lean.config import DecoderConfig
from lope.models.lean.layout import Layout
from lope.models.lean.linear import BlockedLinear, Linear, pack
from lope.models.lean.rope import Rotary, interleave, rotate

# more rows than this without a tree are a slice of a prompt, run alike with and without speculation: slot order serves
PATH_ORDER_ROWS = 128


@dataclass(frozen=True, eq=False)
class Layer:
    """The weights of one layer: fused where they read the same input."""

    attention_norm: Tensor
    qkv: Linear
    query_norm: Tensor | None
    key_norm: Tensor | None
    output: Linear
    mlp_norm: Tensor
    gate_up: Linear
    down: Linear

    def blocked(self) -> "Layer":
        """The same layer, its linears run on few rows at a time."""
        qkv, output = BlockedLinear(self.qkv), BlockedLinear(self.output)
        return replace(self, qkv=qkv, output=output, gate_up=BlockedLinear(self.gate_up), down=BlockedLinear(self.down))


@dataclass(frozen=True, eq=False)
class Segment:
    """One sequence's rows in a pass. `embeddings` [rows, d] replaces the tokens' own where given."""

    cache: SequenceCache
    tokens: Sequence[int]
    layout: Layout
    embeddings: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Weights:
    """Everything that a decoder reads; shared by all that run it."""

    config: DecoderConfig
    dtype: torch.dtype
    device: torch.device
    embedding: Tensor
    layers: tuple[Layer, ...]
    norm: Tensor
    head: Linear
    rotary: Rotary = field(repr=False)

    def truncated(self, layers: int) -> "Weights":
        """The first `layers` layers under the same norm and head."""
        return replace(self, config=replace(self.config, num_layers=layers), layers=self.layers[:layers])


class Decoder:
    """Runs packed passes. `invariant`: a row's bits depend on its path alone (path order, few rows at a time)."""

    def __init__(self, weights: Weights, *, invariant: bool) -> None:
        self._weights = weights
        self.config = weights.config
        self._invariant = invariant
        self._layers = tuple(layer.blocked() for layer in weights.layers) if invariant else weights.layers
        self._head = BlockedLinear(weights.head) if invariant else weights.head
        group = self.config.num_heads // self.config.num_kv_heads
        self._group = padded_group(group) if invariant else group

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self._weights.device

    def new_cache(self) -> SequenceCache:
        """An empty cache for one sequence."""
        return SequenceCache(self.config, self._weights.dtype, self._weights.device)

    def forward(self, segments: Sequence[Segment], layers: Sequence[int] = ()) -> tuple[Tensor, dict[int, Tensor]]:
        """Run all rows of all segments: (last hidden states [r, d] before the final norm, features by layer)."""
        for segment in segments:
            segment.cache.reserve(segment.layout.used)
        attentions = [self._plan(segment.layout) for segment in segments]
        x, rotations = self._enter(segments)
        features: dict[int, Tensor] = {}
        for number, layer in enumerate(self._layers):
            if number in layers:
                features[number] = x
            x = self._layer(number, layer, x, rotations, segments, attentions)
        if len(self._layers) in layers:
            features[len(self._layers)] = self.normed(x)
        return x, features

    def embed(self, tokens: Sequence[int]) -> Tensor:
        """Token embeddings [r, d]."""
        return F.embedding(torch.tensor(tokens, dtype=torch.int64, device=self.device), self._weights.embedding)

    def logits(self, hidden: Tensor) -> Tensor:
        """float32 [r, vocabulary] from last hidden states [r, d]."""
        return self._head(self.normed(hidden)).float()

    def normed(self, hidden: Tensor) -> Tensor:
        """Last hidden states after the final norm [r, d]."""
        return F.rms_norm(hidden, (self.config.hidden_size,), self._weights.norm, self.config.norm_eps)

    def _plan(self, layout: Layout) -> Attention:
        if self._invariant and (layout.ancestors or layout.rows <= PATH_ORDER_ROWS):
            return PathOrder(layout, self._weights.dtype, self.device)
        return SlotOrder(layout, self._group, self._weights.dtype, self.device)

    def _enter(self, segments: Sequence[Segment]) -> tuple[Tensor, Tensor]:
        x = self.embed([token for segment in segments for token in segment.tokens])
        begin = 0
        for segment in segments:
            if segment.embeddings is not None:
                x[begin : begin + segment.layout.rows] = segment.embeddings
            begin += segment.layout.rows
        lengths = [int(length) for segment in segments for length in segment.layout.lengths]
        positions = torch.tensor(lengths, device=self.device) - 1
        return x, self._weights.rotary.at(positions, max(lengths) - 1)

    def _layer(
        self,
        number: int,
        layer: Layer,
        x: Tensor,
        rotations: Tensor,
        segments: Sequence[Segment],
        attentions: Sequence[Attention],
    ) -> Tensor:
        config = self.config
        h, k, w = config.num_heads, config.num_kv_heads, config.head_dim
        rows, wide = x.shape[0], (config.hidden_size,)
        qkv = layer.qkv(torch.rms_norm(x, wide, layer.attention_norm, config.norm_eps)).view(rows, h + 2 * k, w)
        if layer.query_norm is not None and layer.key_norm is not None:
            qkv[:, :h] = F.rms_norm(qkv[:, :h], (w,), layer.query_norm, config.norm_eps)
            qkv[:, h : h + k] = F.rms_norm(qkv[:, h : h + k], (w,), layer.key_norm, config.norm_eps)
        rotate(qkv[:, : h + k], rotations)
        queries = qkv[:, :h].view(rows, k, h // k, w)
        if self._group != h // k:
            queries = torch.constant_pad_nd(queries, (0, 0, 0, self._group - h // k))
        mixed = self._mix(number, queries, qkv[:, h:].view(rows, 2, k, w), segments, attentions)
        x = layer.output(mixed[:, :, : h // k].reshape(rows, h * w), x)
        gate, up = layer.gate_up(torch.rms_norm(x, wide, layer.mlp_norm, config.norm_eps)).chunk(2, dim=-1)
        return layer.down(F.silu(gate).mul_(up), x)

    def _mix(
        self, number: int, queries: Tensor, fresh: Tensor, segments: Sequence[Segment], attentions: Sequence[Attention]
    ) -> Tensor:
        """Write the fresh keys and values [r, 2, k, w], then attend."""
        parts = []
        begin = 0
        for segment, attention in zip(segments, attentions, strict=True):
            end = begin + segment.layout.rows
            store = segment.cache.layer(number)
            slots = segment.layout.slots
            assert slots[-1] - slots[0] + 1 == len(slots), "the rows of a segment stand in consecutive slots"
            store[:, :, slots[0] : slots[-1] + 1] = fresh[begin:end].permute(1, 2, 0, 3)
            parts.append(attention(queries[begin:end], store))
            begin = end
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def load_weights(
    config: DecoderConfig, tensors: Mapping[str, Tensor], dtype: torch.dtype, device: torch.device
) -> Weights:
    """Fuse, interleave and pack a checkpoint's tensors, one layer at a time (`tensors` may read lazily)."""

    def read(name: str) -> Tensor:
        return tensors[name].to(device=device, dtype=dtype)

    def fused(names: Sequence[str], rotated: int = 0) -> Linear:
        parts = [read(f"{name}.weight") for name in names]
        parts = [interleave(p, config.head_dim) if i < rotated else p for i, p in enumerate(parts)]
        biases = [read(f"{name}.bias") for name in names if f"{name}.bias" in shapes]
        biases = [interleave(b, config.head_dim) if i < rotated else b for i, b in enumerate(biases)]
        if biases and len(biases) != len(parts):
            raise ModelError(f"{names[0]} has a bias, but not all of its neighbours {names[1:]} do")
        return pack(torch.cat(parts), torch.cat(biases) if biases else None)

    shapes = config.shapes()
    layers = []
    for number in range(config.num_layers):
        at = f"model.layers.{number}."
        norms: list[Tensor | None] = [None, None]
        if config.qk_norm:
            norms = [interleave(read(f"{at}self_attn.{x}_norm.weight"), config.head_dim) for x in "qk"]
        layers.append(
            Layer(
                attention_norm=read(at + "input_layernorm.weight"),
                qkv=fused([f"{at}self_attn.{x}_proj" for x in "qkv"], rotated=2),
                query_norm=norms[0],
                key_norm=norms[1],
                output=fused([at + "self_attn.o_proj"]),
                mlp_norm=read(at + "post_attention_layernorm.weight"),
                gate_up=fused([f"{at}mlp.{x}_proj" for x in ("gate", "up")]),
                down=fused([at + "mlp.down_proj"]),
            )
        )
    embedding = read("model.embed_tokens.weight")
    head = pack(embedding if config.tied else read("lm_head.weight"))
    norm = read("model.norm.weight")
    return Weights(config, dtype, device, embedding, tuple(layers), norm, head, Rotary(config, device))
