"""Whether packed linears give a row the same bits wherever it stands: asked of the kernels, for CPUs differ in it.

Seen with oneDNN 3.12: on AVX2 every row is alike; on AVX-512 without bf16 a single row of a wide float32 input takes
another kernel than two, and bf16, which is emulated there, rounds by a row's place.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from lope.models.lean.linear import INVARIANT_ROWS, BlockedLinear, Linear, PackedLinear

_PLACES = (0, INVARIANT_ROWS - 1)
# bf16 kernels that are emulated differ at some counts only: all are tried
_COUNTS = {torch.float32: (2, 17), torch.bfloat16: tuple(range(2, INVARIANT_ROWS))}


class RowProbe:
    """Answers by (out, in, bias) of a layer, each tried once: layers of one size run the same kernels."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, bool], int | None] = {}

    def fewest(self, linear: Linear) -> int | None:
        """From how many rows on a row's bits are those of any other pass: 1, or 2; None: never."""
        if not isinstance(linear, PackedLinear):
            return None
        if linear.kind not in self._known:
            self._known[linear.kind] = _tried(linear)
        return self._known[linear.kind]

    def all_invariant(self, linears: Iterable[Linear]) -> bool:
        """Whether all of them can be run so that a row's bits do not depend on the others."""
        return all(self.fewest(linear) is not None for linear in linears)

    def blocked(self, linear: Linear) -> BlockedLinear:
        """The layer run on at least as many rows as it needs, and few at a time."""
        fewest = self.fewest(linear)
        assert fewest is not None, "exact passes are offered only where every layer can be invariant"
        return BlockedLinear(linear, fewest)


@torch.inference_mode()
def _tried(linear: PackedLinear) -> int | None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(INVARIANT_ROWS, linear.kind[1], generator=generator).to(linear.dtype)
    whole = linear(x)
    if not all(torch.equal(linear(x[:count]), whole[:count]) for count in _COUNTS[linear.dtype]):
        return None
    return next((fewest for fewest in (1, 2) if _alone(linear, x, whole, fewest)), None)


def _alone(linear: PackedLinear, x: Tensor, whole: Tensor, fewest: int) -> bool:
    single = BlockedLinear(linear, fewest)
    return all(torch.equal(single(x[place : place + 1])[0], whole[place]) for place in _PLACES)
