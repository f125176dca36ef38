"""Attention of tree rows over a cache: in slot order (fast), or in path order (the same bits in any pass)."""

from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lope.models.lean.layout import Layout

BLOCK = 64


class Attention(Protocol):
    """One sequence's attention in one pass; planned once, used in every layer."""

    def __call__(self, queries: Tensor, cache: Tensor) -> Tensor:
        """queries [r, kv_heads, group, head_dim] over cache [2, kv_heads, slots, head_dim] -> the shape of queries."""


class SlotOrder:
    """Every row over every slot, with a mask: one kernel call. Sums run in slot order, so bits depend on the pass."""

    def __init__(self, layout: Layout, group: int, dtype: torch.dtype, device: torch.device) -> None:
        self._keys = layout.used
        seen = np.arange(self._keys)[None, :] < np.minimum(layout.lengths, layout.context)[:, None]
        for row, path in enumerate(layout.ancestors, start=layout.chain):
            seen[row, list(path)] = True
        mask = np.where(seen, np.float32(0.0), np.float32("-inf")).repeat(group, axis=0)
        self._mask = torch.from_numpy(mask)[None, None].to(device=device, dtype=dtype)

    def __call__(self, queries: Tensor, cache: Tensor) -> Tensor:
        """One masked call; the query heads of a group are rows of one problem."""
        rows, heads, group, width = queries.shape
        packed = queries.transpose(0, 1).reshape(1, heads, rows * group, width)
        keys, values = cache[0, None, :, : self._keys], cache[1, None, :, : self._keys]
        out = F.scaled_dot_product_attention(packed, keys, values, attn_mask=self._mask)
        return out.view(heads, rows, group, width).transpose(0, 1)


class PathOrder:
    """Each row a problem of its own, its keys in path order, cut at multiples of BLOCK: whole blocks, then the rest.

    Two calls of the same kernel, joined by their log-sum-exps. Where both are cut depends on the row's length alone: a
    row's problem has the same shape and the same numbers in every pass, and so the same bits. Whole blocks are read in
    place unless the tree itself crosses a block's edge; then those rows gather their own copy.
    The kernel's scratch must be aligned alike for every thread, which holds when 2 · group is a multiple of the vector
    width in floats: queries come padded to `padded_group(group)`.
    """

    def __init__(self, layout: Layout, dtype: torch.dtype, device: torch.device) -> None:
        heads = (layout.lengths - 1) // BLOCK * BLOCK
        tails = torch.from_numpy(layout.path_slots(heads, BLOCK))
        self._tails = tails.flatten().to(device)
        left = torch.from_numpy(layout.lengths - heads)
        mask = torch.zeros(tails.shape, dtype=dtype).masked_fill(
            torch.arange(BLOCK)[None] >= left[:, None], float("-inf")
        )
        self._mask = mask[:, None, None].to(device)
        self._groups: list[tuple[Tensor | slice, int, Tensor | None]] = []
        for head in sorted(set(heads[heads > 0].tolist())):
            rows = np.nonzero(heads == head)[0]
            where: Tensor | slice = slice(int(rows[0]), int(rows[-1]) + 1)
            if len(rows) != rows[-1] - rows[0] + 1:
                where = torch.from_numpy(rows).to(device)
            own = None
            if head > layout.context:
                own = torch.from_numpy(layout.path_slots(np.zeros_like(heads), head)[rows]).flatten().to(device)
            self._groups.append((where, head, own))

    def __call__(self, queries: Tensor, cache: Tensor) -> Tensor:
        """Whole blocks and rest, joined: out = lerp(rest, whole, sigmoid(lse_whole − lse_rest))."""
        rows, heads, group, width = queries.shape
        rest, rest_lse = _attend(
            queries, _gather(cache, self._tails, rows), self._mask.expand(rows, heads, group, BLOCK)
        )
        for where, head, own in self._groups:
            some = queries[where]
            count = some.shape[0]
            shared = cache[:, None, :, :head].expand(2, count, heads, head, width)
            whole, lse = _attend(some, shared if own is None else _gather(cache, own, count), None)
            if count == rows:
                return _join(whole, lse, rest, rest_lse)
            rest[where] = _join(whole, lse, rest[where], rest_lse[where])
        return rest


def padded_group(group: int) -> int:
    """The group size that PathOrder needs: a multiple of half the vector width in floats."""
    unit = 8 if "AVX512" in torch.backends.cpu.get_cpu_capability() else 4
    return -(-group // unit) * unit


def _gather(cache: Tensor, slots: Tensor, rows: int) -> Tensor:
    """[2, rows, kv_heads, keys, head_dim]: each row's own keys and values."""
    picked = cache.index_select(2, slots)
    heads, width = cache.shape[1], cache.shape[3]
    return picked.view(2, heads, rows, -1, width).transpose(1, 2)


def _attend(queries: Tensor, cache: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        queries, cache[0], cache[1], 0.0, False, attn_mask=mask
    )
    return out, lse


def _join(whole: Tensor, whole_lse: Tensor, rest: Tensor, rest_lse: Tensor) -> Tensor:
    # on full-width tensors: a vector kernel and its scalar tail may round differently, and rows must not meet tails
    gap = (whole_lse - rest_lse).unsqueeze(-1).expand(whole.shape).contiguous()
    return torch.lerp(rest.float(), whole.float(), gap.sigmoid_()).to(whole.dtype)
