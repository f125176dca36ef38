"""Attention and rotary positions over packed rows, for nets that learn; checkpoints keep Hugging Face's half-split."""

import torch
import torch.nn.functional as F
from torch import Tensor

from lope.models.lean.config import DecoderConfig


class PackedRotary:
    """cos and sin of every place: [B, 1, T, head_dim] each."""

    def __init__(self, config: DecoderConfig, position: Tensor) -> None:
        half = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device=position.device) / config.head_dim
        angles = position[:, None, :, None].float() * (1.0 / config.rope_theta**half)
        both = torch.cat([angles, angles], dim=-1)
        self._cos, self._sin = both.cos(), both.sin()

    def __call__(self, x: Tensor) -> Tensor:
        """Rotate x [B, heads, T, head_dim]."""
        first, second = x.chunk(2, dim=-1)
        return x * self._cos + torch.cat([-second, first], dim=-1) * self._sin


def causal_mask(document: Tensor) -> Tensor:
    """float32 [B, 1, T, T]: 0 where a place sees another (itself and earlier ones of its own sequence), else -inf.

    Places of no sequence see each other, so that no row of the softmax is empty.
    """
    length = document.shape[1]
    same = document[:, :, None] == document[:, None, :]
    seen = same & torch.ones(length, length, dtype=torch.bool, device=document.device).tril()
    return torch.zeros(seen.shape, device=document.device).masked_fill(~seen, float("-inf"))[:, None]


def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """queries [B, heads, T, w] over keys, values [B, kv_heads, T, w] -> [B, T, heads · w]."""
    group = queries.shape[1] // keys.shape[1]
    if group > 1:
        keys, values = keys.repeat_interleave(group, dim=1), values.repeat_interleave(group, dim=1)
    out = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    return out.transpose(1, 2).flatten(2)
