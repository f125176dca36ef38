"""The tensors of a GGUF file by Hugging Face name, dequantised when asked for."""

import functools
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version

import gguf
import numpy as np
import torch
from torch import Tensor

from lope.core.errors import ModelError
from lope.models.coded_weight import CodedWeight
from lope.models.gguf_codes import CODED, coded
from lope.models.gguf_header import GgufHeader, GgufTensor

_WHOLE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_PER_LAYER = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
ROPE_FREQUENCIES = "rope_freqs.weight"
_NUMBERS_AT_ONCE = 1 << 18


class GgufTensors(Mapping[str, Tensor]):
    """Hugging Face name -> float32 tensor.

    permuted: stored name ending -> number of heads, of tensors whose rows llama.cpp interleaves: within each head, row
    2i + j is Hugging Face's row j * d / 2 + i. (Architecture `llama` stores q and k so; `qwen2` and `qwen3` do not.)
    Raises ModelError for a quantisation that `gguf` cannot undo and for tensors that reach past the end of the file.
    """

    def __init__(self, header: GgufHeader, permuted: Mapping[str, int]) -> None:
        self._header = header
        self._permuted = permuted
        self._bytes = np.memmap(header.path, mode="r")
        stored = [info for info in header.tensors.values() if info.name != ROPE_FREQUENCIES]
        self._stored = {_hugging_face_name(info.name): info for info in stored}
        for info in header.tensors.values():
            self._check(info)

    def __getitem__(self, name: str) -> Tensor:
        info = self._stored[name]
        return self._order(info)(self.read(info))

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each tensor."""
        return {name: info.shape for name, info in self._stored.items()}

    def as_stored(self, name: str) -> Tensor | CodedWeight:
        """The same numbers, in the file's own codes where `gguf_codes` knows them."""
        info = self._stored[name]
        kind = gguf.GGMLQuantizationType(info.kind)
        if kind not in CODED or len(info.shape) != 2:
            return self[name]
        data = self._bytes[info.offset : info.offset + _num_bytes(info)]
        return coded(data, kind, *info.shape).reordered(self._order(info))

    def read(self, info: GgufTensor) -> Tensor:
        """One tensor as it is stored, float32."""
        kind = gguf.GGMLQuantizationType(info.kind)
        data = self._bytes[info.offset : info.offset + _num_bytes(info)]
        if kind == gguf.GGMLQuantizationType.F64:
            return torch.from_numpy(data.view("<f8").astype(np.float32).reshape(info.shape))
        values = np.empty(torch.Size(info.shape).numel(), dtype=np.float32)
        block, width = gguf.GGML_QUANT_SIZES[kind]
        step = _NUMBERS_AT_ONCE // block  # blocks do not know of rows; few long rows take a fifth of the time
        for start in range(0, len(data) // width, step):
            part = gguf.dequantize(data[start * width : (start + step) * width].reshape(1, -1), kind)
            values[start * block : start * block + part.size] = part.ravel()
        return torch.from_numpy(values.reshape(info.shape))

    def _order(self, info: GgufTensor) -> Callable[[Tensor], Tensor]:
        heads = self._permuted.get(info.name.split(".", 2)[-1])
        return (lambda x: x) if heads is None else (lambda x: unpermuted(x, heads))

    def _check(self, info: GgufTensor) -> None:
        if not _can_read(info.kind):
            known = {kind.value: kind.name for kind in gguf.GGMLQuantizationType}
            raise ModelError(
                f"{self._header.path}: tensor {info.name} has quantisation type {known.get(info.kind, info.kind)}, "
                f"which the gguf package (version {version('gguf')}) cannot undo"
            )
        block = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(info.kind)][0]
        if not info.shape or min(info.shape) < 1 or info.shape[-1] % block:
            raise ModelError(
                f"{self._header.path}: tensor {info.name} has shape {list(info.shape)}, not whole blocks of {block}"
            )
        if info.offset + _num_bytes(info) > self._header.size:
            raise ModelError(f"{self._header.path}: is cut short: tensor {info.name} reaches past the end of the file")


class GgufStored(Mapping[str, Tensor | CodedWeight]):
    """The tensors of a GGUF file, in the file's own codes where `gguf_codes` knows them."""

    def __init__(self, tensors: GgufTensors) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> Tensor | CodedWeight:
        return self._tensors.as_stored(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def unpermuted(tensor: Tensor, num_heads: int) -> Tensor:
    """Undo llama.cpp's interleaving of the rows of q or k (or of their bias)."""
    half = tensor.shape[0] // num_heads // 2
    return tensor.reshape(num_heads, half, 2, *tensor.shape[1:]).swapaxes(1, 2).reshape(tensor.shape).contiguous()


def _hugging_face_name(name: str) -> str:
    if name in _WHOLE:
        return _WHOLE[name]
    parts = name.split(".")
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in _PER_LAYER:
        return f"model.layers.{parts[1]}.{_PER_LAYER[parts[2]]}.{parts[3]}"
    return name  # it will be reported, under its own name, as not belonging to the model


def _num_bytes(info: GgufTensor) -> int:
    block, width = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(info.kind)]
    count = 1
    for side in info.shape:
        count *= side
    return int(count // block * width)


@functools.cache
def _can_read(kind: int) -> bool:
    """Whether `gguf` can undo this quantisation: tried on one block."""
    if kind not in {known.value for known in gguf.GGMLQuantizationType}:
        return False
    found = gguf.GGMLQuantizationType(kind)
    try:
        gguf.dequantize(np.zeros((1, gguf.GGML_QUANT_SIZES[found][1]), dtype=np.uint8), found)
    except NotImplementedError:
        return bool(found == gguf.GGMLQuantizationType.F64)
    return True
