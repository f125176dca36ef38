"""The two trained drafters in plain torch operations, one sequence in float64: what the packed ones must say."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from lope.models.drafter_folder import DrafterAbout


def rms(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return weight * x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt()


def rope(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """x [rows, heads, w], the two halves of each pair w / 2 apart, turned as transformers turns them."""
    half = x.shape[-1] // 2
    frequency = theta ** -(torch.arange(half, dtype=x.dtype) / half)
    angle = (positions[:, None] * frequency).repeat(1, 2)[:, None]
    turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
    return x * angle.cos() + turned * angle.sin()


class NaiveLayer:
    """One layer over one growing sequence; keys and values [rows, kv_heads, w] of the rows so far are kept."""

    def __init__(self, tensors: Mapping[str, Tensor], about: DrafterAbout, number: int) -> None:
        self._tensors, self._at, self._sizes = tensors, f"layers.{number}.", about.decoder
        self._keys = self._values = torch.zeros(0, about.decoder.num_kv_heads, about.decoder.head_dim).double()

    def weight(self, name: str) -> Tensor:
        return self._tensors[f"{self._at}{name}.weight"].double()

    def rows(self, x: Tensor, read: Tensor) -> Tensor:
        """x [rows, d] after the layer; its attention reads `read`. The rows stand behind those before them."""
        sizes, before, count = self._sizes, len(self._keys), len(x)
        query, key, value = (
            (read @ self.weight(f"self_attn.{name}_proj").T).view(count, -1, sizes.head_dim) for name in "qkv"
        )
        positions = torch.arange(before, before + count, dtype=torch.float64)
        query = rope(query, positions, sizes.rope_theta)
        self._keys = torch.cat([self._keys, rope(key, positions, sizes.rope_theta)])
        self._values = torch.cat([self._values, value])
        unseen = torch.arange(before + count)[None] > positions[:, None]
        mixed = []
        for head in range(sizes.num_heads):
            shared = head // (sizes.num_heads // sizes.num_kv_heads)
            scores = query[:, head] @ self._keys[:, shared].T / sizes.head_dim**0.5
            mixed.append(scores.masked_fill(unseen, float("-inf")).softmax(dim=-1) @ self._values[:, shared])
        x = x + torch.cat(mixed, dim=-1) @ self.weight("self_attn.o_proj").T
        normed = rms(x, self.weight("post_attention_layernorm"), sizes.norm_eps)
        gate, up = normed @ self.weight("mlp.gate_proj").T, normed @ self.weight("mlp.up_proj").T
        return x + (gate * torch.sigmoid(gate) * up) @ self.weight("mlp.down_proj").T


def logits(tensors: Mapping[str, Tensor], about: DrafterAbout, x: Tensor) -> Tensor:
    normed = rms(x, tensors["norm.weight"].double(), about.decoder.norm_eps)
    return tensors["lm_head.weight"].double() @ normed


def standalone(tensors: Mapping[str, Tensor], about: DrafterAbout, table: Tensor, ids: Sequence[int]) -> Tensor:
    """[K]: the logits after these tokens."""
    x = table[list(ids)].double() @ tensors["embed_projection.weight"].double().T
    for number in range(about.decoder.num_layers):
        layer = NaiveLayer(tensors, about, number)
        x = layer.rows(x, rms(x, layer.weight("input_layernorm"), about.decoder.norm_eps))
    return logits(tensors, about, x[-1])


def eagle(
    tensors: Mapping[str, Tensor], about: DrafterAbout, embedded: Tensor, features: Tensor, below: Sequence[Tensor] = ()
) -> Tensor:
    """[K]: the logits below the last of these rows.

    embedded [n, d]: of the context items; features [n - 1, L·d]: the target's hidden states at all but the last one;
    below: the embeddings [d] along a path of drafted tokens.
    """
    layer, eps = NaiveLayer(tensors, about, 0), about.decoder.norm_eps

    def rows(tokens: Tensor, h: Tensor) -> Tensor:
        normed = rms(tokens.double(), layer.weight("input_layernorm"), eps), rms(h, layer.weight("hidden_norm"), eps)
        return layer.rows(h, torch.cat(normed, dim=-1))

    x = rows(embedded[1:], features.double() @ tensors["fc.weight"].double().T)
    for token in below:
        x = rows(token[None], x[-1:])
    return logits(tensors, about, x[-1])
