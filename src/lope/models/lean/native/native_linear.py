"""A linear layer whose weights stay as the checkpoint stores them, in panels of 16 outputs."""

import ctypes

import torch
import torch.nn.functional as F
from torch import Tensor

from lope.models.coded_weight import CodedWeight
from lope.models.lean.native.library import Library, Weight

_PANEL = 16
# a pass takes up to so many panels at once, so that their number is a multiple of it
_TOGETHER = 4
_GROUPS = (16, 32)
_FLOAT32, _BFLOAT16, _FLOAT16, _ROW8, _INT8, _INT4 = range(6)
_FLOATS = {torch.float32: _FLOAT32, torch.bfloat16: _BFLOAT16, torch.float16: _FLOAT16}


class NativeLinear:
    """x [r, in] float32 -> [r, out]; a row's bits do not depend on the other rows. `about`: what C++ reads of it."""

    def __init__(self, library: Library, weight: Tensor | CodedWeight, bias: Tensor | None) -> None:
        self._library = library
        self.about = Weight(outputs=weight.shape[0], inputs=weight.shape[1])
        self._held: dict[str, Tensor] = {}
        if isinstance(weight, CodedWeight):
            self._take_codes(weight)
        else:
            self.about.kind = _FLOATS[weight.dtype]
            self._hold("panels", _panels(weight))
        if bias is not None:
            self._hold("bias", bias.float().contiguous())

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Apply; the residual is added in the same kernel."""
        rows, width = x.shape
        assert width == self.about.inputs, "as wide as the weight"
        x = x.float().contiguous()
        out = torch.empty(rows, self.about.outputs)
        beside = None
        if residual is not None:
            assert residual.shape == out.shape, "a residual has the shape of what it is added to"
            residual = residual.float().contiguous()
            beside = residual.data_ptr()
        if rows:
            self._library.linear(self.about, rows, torch.get_num_threads(), x.data_ptr(), beside, out.data_ptr())
        return out

    def _take_codes(self, weight: CodedWeight) -> None:
        codes = _panels(weight.codes)
        if weight.by_row:
            self.about.kind = _ROW8
            self._hold("panels", codes)
            self._hold("row_scales", weight.scales.contiguous())
            return
        assert weight.group in _GROUPS, f"groups of {_GROUPS} inputs share a scale"
        four = weight.codes.dtype == torch.uint8
        self.about.kind = _INT4 if four else _INT8
        self.about.group = weight.group
        self.about.wide = weight.scales.dtype == torch.float32
        self._hold("panels", _packed(codes, self._library.step) if four else codes)
        self._hold("scales", _panels(weight.scales))
        if weight.minima is not None:
            self._hold("minima", _panels(weight.minima))

    def _hold(self, name: str, tensor: Tensor) -> None:
        self._held[name] = tensor
        setattr(self.about, name, tensor.data_ptr())


def readable(weight: Tensor | CodedWeight) -> bool:
    """Whether the kernels read a weight as it is stored."""
    if isinstance(weight, CodedWeight):
        return True
    return weight.dtype in _FLOATS and weight.device.type == "cpu"


def _panels(x: Tensor) -> Tensor:
    """[rows, columns] -> [panel, column, 16], filled up with zeros to whole panels, a multiple of four of them."""
    x = F.pad(x, (0, 0, 0, -x.shape[0] % (_PANEL * _TOGETHER)))
    return x.view(-1, _PANEL, x.shape[1]).transpose(1, 2).contiguous()


def _packed(codes: Tensor, step: int) -> Tensor:
    """Panels of four-bit codes, uint8 [panel, column, 16]: int32 [panel, column / 8, 16], eight columns in a word, or
    uint8 [panel, column, 8], two outputs in a byte.
    """
    if step == 1:
        return (codes[:, :, :8] | (codes[:, :, 8:] << 4)).contiguous()
    columns = codes.view(len(codes), -1, step, _PANEL).to(torch.int32)
    words = columns[:, :, 0].clone()
    for number in range(1, step):
        words |= columns[:, :, number] << 4 * number
    return words


def pointer(tensor: Tensor | None) -> ctypes.c_void_p:
    """The address of a float32 tensor, or none."""
    assert tensor is None or (tensor.dtype == torch.float32 and tensor.is_contiguous()), "C++ reads float32 in a row"
    return ctypes.c_void_p(None if tensor is None else tensor.data_ptr())
