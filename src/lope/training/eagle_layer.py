"""The layer of a feature drafter (Li et al. 2025, arXiv:2503.01840), run on many short chains at once while it learns.

Each chain stands below a root of its own, all over one shared context. The context is a dense product under a mask; a
chain's own keys are met element by element: no matrix of steps x places.
"""

import torch
from torch import Tensor, nn

from lope.models.lean.config import DecoderConfig
from lope.training.gated_mlp import GatedMlp
from lope.training.packed_attention import PackedRotary

# B rows, T places, R roots of a row, k key-value heads, g query heads of each, w head_dim, d hidden size.


class EagleContext:
    """What chains attend to: the rows of step 0, and each root's own steps after it.

    keys, values [B, k, T, w]; document int64 [B, T]; roots int64 [B, R]. A root sees the items of its
    document up to itself.
    """

    def __init__(self, keys: Tensor, values: Tensor, *, document: Tensor, roots: Tensor) -> None:
        self._keys = keys
        self._values = values
        self._own: list[tuple[Tensor, Tensor]] = []
        place = torch.arange(document.shape[1], device=document.device)
        seen = (place <= roots[..., None]) & (document[:, None] == document.gather(1, roots)[..., None])
        self._mask = torch.zeros(seen.shape, device=keys.device).masked_fill_(~seen, float("-inf"))[:, None, None]

    def extend(self, keys: Tensor, values: Tensor) -> None:
        """One more step below every root: keys, values [B, k, R, w]."""
        self._own.append((keys, values))

    def attend(self, queries: Tensor) -> Tensor:
        """[B, k, g, R, w] of scaled queries [B, k, g, R, w]."""
        flat, grouped = queries.flatten(2, 3), queries.shape[:4]
        scores = (flat @ self._keys.transpose(-1, -2)).view(*grouped, -1)
        scores += self._mask  # in place: no backward formula reads the scores
        own = [(queries * keys[:, :, None]).sum(-1, keepdim=True) for keys, _ in self._own]
        shares = torch.cat([scores, *own], dim=-1).softmax(-1) if own else scores.softmax(-1)
        count = self._keys.shape[2]
        met = (shares[..., :count].flatten(2, 3) @ self._values).view(queries.shape)
        for step, (_, values) in enumerate(self._own, start=count):
            met = torch.addcmul(met, shares[..., step : step + 1], values[:, :, None])
        return met


class EagleAttention(nn.Module):
    """Grouped-query attention whose input is twice as wide as its output."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        width, heads, kv_heads, head = config.hidden_size, config.num_heads, config.num_kv_heads, config.head_dim
        self._kv_heads, self._head = kv_heads, head
        self.q_proj = nn.Linear(2 * width, heads * head, bias=False)
        self.k_proj = nn.Linear(2 * width, kv_heads * head, bias=False)
        self.v_proj = nn.Linear(2 * width, kv_heads * head, bias=False)
        self.o_proj = nn.Linear(heads * head, width, bias=False)

    def keys_values(self, inputs: Tensor, rotary: PackedRotary) -> tuple[Tensor, Tensor]:
        """Each [B, k, n, w] of inputs [B, n, 2·d]."""
        keys, values = self._heads(self.k_proj(inputs)), self._heads(self.v_proj(inputs))
        return rotary(keys), values

    def forward(self, inputs: Tensor, rotary: PackedRotary, context: EagleContext) -> Tensor:
        """[B, R, d] of the roots' inputs [B, R, 2·d]."""
        queries = rotary(self._heads(self.q_proj(inputs))) * self._head**-0.5
        met = context.attend(queries.unflatten(1, (self._kv_heads, -1)))
        return self.o_proj(met.flatten(1, 2).transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self._head)).transpose(1, 2)  # type: ignore[no-any-return]


class EagleLayer(nn.Module):
    """One layer of the Llama family whose attention reads embedding and feature side by side."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.norm_eps)
        self.hidden_norm = nn.RMSNorm(config.hidden_size, eps=config.norm_eps)
        self.self_attn = EagleAttention(config)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.norm_eps)
        self.mlp = GatedMlp(config)

    def inputs(self, embedded: Tensor, hidden: Tensor) -> Tensor:
        """What attention reads: [..., 2·d]."""
        return torch.cat([self.input_layernorm(embedded), self.hidden_norm(hidden)], dim=-1)

    def forward(self, hidden: Tensor, inputs: Tensor, rotary: PackedRotary, context: EagleContext) -> Tensor:
        """hidden [B, R, d] of the roots -> [B, R, d]."""
        x = hidden + self.self_attn(inputs, rotary, context)
        return x + self.mlp(self.post_attention_layernorm(x))  # type: ignore[no-any-return]
