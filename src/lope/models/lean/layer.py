"""One layer of the Llama family, and the rows of many sequences on their way through such layers.

d hidden size, r rows of the pass, h query heads, k key-value heads, w head_dim, g = h / k.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lope.models.lean.attention import Attention
from lope.models.lean.cache import SequenceCache
from lope.models.lean.config import DecoderConfig
from lope.models.lean.layout import Layout
from lope.models.lean.linear import Linear
from lope.models.lean.rope import Rotary, rotate
from lope.models.lean.row_probe import RowProbe


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

    @property
    def linears(self) -> tuple[Linear, ...]:
        """All of them."""
        return self.qkv, self.output, self.gate_up, self.down

    def blocked(self, probe: RowProbe) -> "Layer":
        """The same layer, its linears run so that a row's bits do not depend on the others."""
        qkv, output, gate_up, down = (probe.blocked(linear) for linear in self.linears)
        return replace(self, qkv=qkv, output=output, gate_up=gate_up, down=down)


@dataclass(frozen=True, eq=False)
class Segment:
    """One sequence's rows in a pass. `embeddings` [rows, d] replaces the tokens' own where given."""

    cache: SequenceCache
    tokens: Sequence[int]
    layout: Layout
    embeddings: Tensor | None = None


class LayerPass:
    """One packed pass: where rows stand and whom they see is settled once, for all layers.

    attentions: one for each segment. group: g, or what it is padded to.
    """

    def __init__(
        self,
        config: DecoderConfig,
        segments: Sequence[Segment],
        attentions: Sequence[Attention],
        rotary: Rotary,
        group: int,
    ) -> None:
        self._config = config
        self._segments = segments
        self._attentions = attentions
        self._group = group
        # a row stands behind all other keys that it sees
        positions = np.concatenate([segment.layout.lengths for segment in segments]) - 1
        self._rotations = rotary.at(torch.from_numpy(positions).to(rotary.device), int(positions.max()))

    def through(self, first: int, layers: Sequence[Layer], x: Tensor, read: Tensor | None = None) -> Tensor:
        """What layers `first`, first + 1, ... make of x [r, d]; `read` [r, in] is what the attention of the first one
        reads: x, normed, if None.
        """
        for number, layer in enumerate(layers, start=first):
            x = self._layer(number, layer, x, read)
            read = None
        return x

    def _layer(self, number: int, layer: Layer, x: Tensor, read: Tensor | None) -> Tensor:
        config = self._config
        h, k, w = config.num_heads, config.num_kv_heads, config.head_dim
        rows, wide = x.shape[0], (config.hidden_size,)
        if read is None:
            read = torch.rms_norm(x, wide, layer.attention_norm, config.norm_eps)
        qkv = layer.qkv(read).view(rows, h + 2 * k, w)
        if layer.query_norm is not None and layer.key_norm is not None:
            qkv[:, :h] = F.rms_norm(qkv[:, :h], (w,), layer.query_norm, config.norm_eps)
            qkv[:, h : h + k] = F.rms_norm(qkv[:, h : h + k], (w,), layer.key_norm, config.norm_eps)
        rotate(qkv[:, : h + k], self._rotations)
        queries = qkv[:, :h].view(rows, k, h // k, w)
        if self._group != h // k:
            queries = torch.constant_pad_nd(queries, (0, 0, 0, self._group - h // k))
        mixed = self._mix(number, queries, qkv[:, h:].view(rows, 2, k, w))
        x = layer.output(mixed[:, :, : h // k].reshape(rows, h * w), x)
        gate, up = layer.gate_up(torch.rms_norm(x, wide, layer.mlp_norm, config.norm_eps)).chunk(2, dim=-1)
        return layer.down(F.silu(gate).mul_(up), x)

    def _mix(self, number: int, queries: Tensor, fresh: Tensor) -> Tensor:
        """Write the fresh keys and values [r, 2, k, w], then attend."""
        parts = []
        begin = 0
        for segment, attention in zip(self._segments, self._attentions, strict=True):
            end = begin + segment.layout.rows
            store = segment.cache.layer(number)
            slots = segment.layout.slots
            assert slots[-1] - slots[0] + 1 == len(slots), "the rows of a segment stand in consecutive slots"
            store[:, :, slots[0] : slots[-1] + 1] = fresh[begin:end].permute(1, 2, 0, 3)
            parts.append(attention(queries[begin:end], store))
            begin = end
        return parts[0] if len(parts) == 1 else torch.cat(parts)
