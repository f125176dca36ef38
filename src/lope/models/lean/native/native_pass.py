"""One packed pass of C++ over the rows of many sequences, a call for each layer."""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lope.models.lean.config import DecoderConfig
from lope.models.lean.layer import Layer, Segment, rotations_of
from lope.models.lean.layout import Layout
from lope.models.lean.native.library import LayerAbout, Library, PassAbout
from lope.models.lean.native.native_linear import NativeLinear, pointer
from lope.models.lean.rope import Rotary

LayersAbout = WeakKeyDictionary[Layer, LayerAbout]


class NativePass:
    """Where rows stand and whom they see is settled once, for all layers; each row sees its own path, in path order."""

    def __init__(
        self,
        library: Library,
        kept: LayersAbout,
        config: DecoderConfig,
        segments: Sequence[Segment],
        rotary: Rotary,
    ) -> None:
        self._library = library
        self._kept = kept
        self._config = config
        self._segments = segments
        layouts = [segment.layout for segment in segments]
        rotations = torch.view_as_real(rotations_of(segments, rotary)).contiguous()
        contexts: list[int] = []
        paths: list[int] = []
        begins: list[int] = []
        for layout in layouts:
            _check(layout)
            contexts += [layout.context] * layout.rows
            begins += [0] * layout.chain
            for path in layout.ancestors:
                begins.append(len(paths))
                paths += path
        columns = {
            "sequence": np.repeat(np.arange(len(layouts)), [layout.rows for layout in layouts]),
            "length": np.concatenate([layout.lengths for layout in layouts]),
            "slot": [slot for layout in layouts for slot in layout.slots],
            "context": contexts,
            "path": begins,
            "paths": paths or [0],
        }
        self._held: dict[str, NDArray[np.int32]] = {k: np.asarray(v, dtype=np.int32) for k, v in columns.items()}
        self._rotations = rotations
        self._slots = np.array([segment.cache.slots for segment in segments], dtype=np.int64)
        self._first_layers = np.array([segment.cache.layer(0).data_ptr() for segment in segments], dtype=np.uint64)
        self._layer_bytes = np.array([segment.cache.layer_bytes for segment in segments], dtype=np.uint64)
        self._caches = self._first_layers.copy()
        self._about = PassAbout(
            rows=len(contexts),
            threads=torch.get_num_threads(),
            rotations=rotations.data_ptr(),
            caches=self._caches.ctypes.data,
            slots=self._slots.ctypes.data,
            **{name: held.ctypes.data for name, held in self._held.items()},
        )

    def through(self, number: int, layer: Layer, x: Tensor, read: Tensor | None = None) -> Tensor:
        """What layer `number` makes of x [r, d]; `read` [r, in] is what its attention reads: x, normed, if None."""
        about = self._kept.get(layer)
        if about is None:
            about = self._kept[layer] = _about(layer, self._config)
        assert x.shape == (self._about.rows, self._config.hidden_size), "a row of x for each row of the pass"
        x = x.float().contiguous()
        beside = None
        if read is not None:
            assert read.shape == (self._about.rows, about.qkv.inputs), "as wide as the layer reads"
            read = read.float().contiguous()
            beside = read.data_ptr()
        self._caches[:] = self._first_layers + self._layer_bytes * np.uint64(number)
        out = torch.empty(x.shape)
        self._library.layer(about, self._about, x.data_ptr(), beside, out.data_ptr())
        return out


def _check(layout: Layout) -> None:
    """C++ follows these numbers through memory."""
    lengths = layout.lengths.tolist()
    expected = [*range(layout.start + 1, layout.context + 1), *(layout.context + len(p) for p in layout.ancestors)]
    assert lengths == expected, "a row sees the context, or the part before it, and its own path"
    assert all(0 <= slot < layout.used for path in layout.ancestors for slot in path), "a path lies in the cache"


def _about(layer: Layer, config: DecoderConfig) -> LayerAbout:
    """What C++ reads of a layer; the layer keeps what the addresses point to."""
    linears = [linear for linear in layer.linears if isinstance(linear, NativeLinear)]
    assert len(linears) == 4, "all of a layer's linears are native, or none"
    return LayerAbout(
        *(linear.about for linear in linears),
        pointer(layer.attention_norm),
        pointer(layer.query_norm),
        pointer(layer.key_norm),
        pointer(layer.mlp_norm),
        config.norm_eps,
        config.hidden_size,
        config.num_heads,
        config.num_kv_heads,
        config.head_dim,
    )
