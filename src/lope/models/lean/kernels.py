"""What runs a decoder's layers: torch's kernels anywhere, lope's own on a CPU with a C++ compiler beside it."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from lope.models.coded_weight import CodedWeight, decoded
from lope.models.lean.attention import Attention, PathOrder, SlotOrder, padded_group
from lope.models.lean.config import DecoderConfig
from lope.models.lean.layer import Layer, LayerPass, Segment
from lope.models.lean.linear import Linear, can_pack, has_bfloat16, pack
from lope.models.lean.native.library import Library, library
from lope.models.lean.native.native_linear import NativeLinear, pointer, readable
from lope.models.lean.native.native_pass import LayersAbout, NativePass
from lope.models.lean.rope import Rotary
from lope.models.lean.row_probe import RowProbe

# more rows than this without a tree are a slice of a prompt, run alike with and without speculation: slot order serves
PATH_ORDER_ROWS = 128


class RowsPass(Protocol):
    """One packed pass: where rows stand and whom they see is settled once, for all layers."""

    def through(self, first: int, layers: Sequence[Layer], x: Tensor, read: Tensor | None = None) -> Tensor:
        """What layers `first`, first + 1, ... make of x [r, d]; `read` [r, in] is what the attention of the first one
        reads: x, normed, if None.
        """


class Kernels(Protocol):
    """Packs weights and runs passes for one dtype on one device.

    version: what changes when they do, beside torch. reads_codes: coded weights stay in their codes.
    """

    name: str
    version: str
    reads_codes: bool

    def pack(self, weight: Tensor | CodedWeight, bias: Tensor | None = None) -> Linear:
        """The fastest layer for this weight [out, in]."""

    def can_be_invariant(self, linears: Iterable[Linear]) -> bool:
        """Whether a row's bits can be the same in any pass."""

    def invariant(self, layers: Sequence[Layer], head: Linear) -> tuple[tuple[Layer, ...], Linear]:
        """The same layers, run so that they are."""

    def norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """x [r, d] over the root mean square of its rows, times weight [d]."""

    def begin(self, config: DecoderConfig, segments: Sequence[Segment], rotary: Rotary, *, invariant: bool) -> RowsPass:
        """A pass over the rows of all segments, whose caches have room."""


class NativeKernels:
    """C++ in float32 over weights as they are stored. Every pass is row-invariant: each row sums on its own."""

    name = "native"
    reads_codes = True

    def __init__(self, library: Library) -> None:
        self._library = library
        self.version = library.version
        self._layers: LayersAbout = LayersAbout()

    def pack(self, weight: Tensor | CodedWeight, bias: Tensor | None = None) -> Linear:
        """Keep the weight in its own storage."""
        return NativeLinear(self._library, weight if readable(weight) else decoded(weight).float().cpu(), bias)

    def can_be_invariant(self, linears: Iterable[Linear]) -> bool:
        """Always."""
        return True

    def invariant(self, layers: Sequence[Layer], head: Linear) -> tuple[tuple[Layer, ...], Linear]:
        """As they are."""
        return tuple(layers), head

    def norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """In C++: torch's takes ten times as long for a row."""
        assert weight.shape == x.shape[1:], "a weight for each column"
        x, out = x.float().contiguous(), torch.empty(x.shape)
        self._library.norm(*x.shape, eps, x.data_ptr(), pointer(weight), out.data_ptr())
        return out

    def begin(self, config: DecoderConfig, segments: Sequence[Segment], rotary: Rotary, *, invariant: bool) -> RowsPass:
        """A pass of C++."""
        return NativePass(self._library, self._layers, config, segments, rotary)


class TorchKernels:
    """oneDNN-packed linears on a CPU, plain tensors elsewhere, attention by torch."""

    name = "torch"
    version = ""
    reads_codes = False

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self._dtype = dtype
        self._device = device
        self._probe = RowProbe()

    def pack(self, weight: Tensor | CodedWeight, bias: Tensor | None = None) -> Linear:
        """Numbers of the run's own dtype, packed where oneDNN can."""
        numbers = decoded(weight).to(device=self._device, dtype=self._dtype)
        return pack(numbers, None if bias is None else bias.to(numbers))

    def can_be_invariant(self, linears: Iterable[Linear]) -> bool:
        """Asked of the kernels. Where the CPU only emulates bfloat16, attention rounds by the shape of the pass."""
        if self._dtype == torch.bfloat16 and not has_bfloat16():
            return False
        return can_pack(self._dtype, self._device) and self._probe.all_invariant(linears)

    def invariant(self, layers: Sequence[Layer], head: Linear) -> tuple[tuple[Layer, ...], Linear]:
        """Linears on few rows at a time."""
        return tuple(layer.blocked(self._probe) for layer in layers), self._probe.blocked(head)

    def norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """By torch."""
        return F.rms_norm(x, weight.shape, weight, eps)

    def begin(self, config: DecoderConfig, segments: Sequence[Segment], rotary: Rotary, *, invariant: bool) -> RowsPass:
        """A pass of torch's own kernels; path order for rows that must not depend on the pass."""
        group = config.num_heads // config.num_kv_heads
        group = padded_group(group) if invariant else group

        def attention(segment: Segment) -> Attention:
            layout = segment.layout
            if invariant and (layout.ancestors or layout.rows <= PATH_ORDER_ROWS):
                return PathOrder(layout, self._dtype, self._device)
            return SlotOrder(layout, group, self._dtype, self._device)

        return LayerPass(config, segments, [attention(segment) for segment in segments], rotary, group)


def kernels_for(dtype: torch.dtype, device: torch.device) -> Kernels:
    """lope's own for float32 on a CPU where they can be built, else torch's. `$LOPE_KERNELS` may say which."""
    if dtype == torch.float32 and device.type == "cpu":
        built = library()
        if built is not None:
            return NativeKernels(built)
    return TorchKernels(dtype, device)
