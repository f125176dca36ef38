"""One packed pass of C++ over the rows of many sequences, a call for many layers."""

import ctypes
import itertools
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from lope.models.lean.config import DecoderConfig
from lope.models.lean.layer import Layer, Segment
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
        self._segments = segments  # their caches stay where they are
        rows: dict[str, list[int]] = {name: [] for name in ("sequence", "length", "slot", "context", "path")}
        paths: list[int] = []
        for number, layout in enumerate(segment.layout for segment in segments):
            rows["sequence"] += [number] * layout.rows
            rows["length"] += _lengths(layout)
            rows["slot"] += layout.slots
            rows["context"] += [layout.context] * layout.rows
            rows["path"] += [0] * layout.chain
            for path in layout.ancestors:
                rows["path"].append(len(paths))
                paths += path
        count = len(rows["length"])
        self._rows = np.array([*itertools.chain(*rows.values()), *paths], dtype=np.int32)
        caches = [segment.cache for segment in segments]
        where = [(cache.layer(0).data_ptr(), cache.slots, cache.layer_stride) for cache in caches]
        self._caches = np.array(list(zip(*where, strict=True)), dtype=np.int64)
        self._rotations = torch.view_as_real(rotary.upto(max(rows["length"])))
        at, by = self._rows.ctypes.data, self._caches.ctypes.data
        self._about = PassAbout(
            rows=count,
            threads=torch.get_num_threads(),
            rotations=self._rotations.data_ptr(),
            **{name: at + 4 * number * count for number, name in enumerate((*rows, "paths"))},
            **{name: by + 8 * number * len(caches) for number, name in enumerate(("caches", "slots", "strides"))},
        )

    def through(self, first: int, layers: Sequence[Layer], x: Tensor, read: Tensor | None = None) -> Tensor:
        """What layers `first`, first + 1, ... make of x [r, d]; `read` [r, in] is what the attention of the first one
        reads: x, normed, if None.
        """
        abouts = [self._kept.get(layer) or self._keep(layer) for layer in layers]
        assert x.shape == (self._about.rows, self._config.hidden_size), "a row of x for each row of the pass"
        x = x.float().contiguous()
        beside = None
        if read is not None:
            assert read.shape == (self._about.rows, abouts[0].qkv.inputs), "as wide as the layer reads"
            read = read.float().contiguous()
            beside = read.data_ptr()
        out = torch.empty(x.shape)
        where = (ctypes.c_void_p * len(abouts))(*map(ctypes.addressof, abouts))
        self._library.layers(where, len(abouts), self._about, first, x.data_ptr(), beside, out.data_ptr())
        return out

    def _keep(self, layer: Layer) -> LayerAbout:
        about = self._kept[layer] = _about(layer, self._config)
        return about


def _lengths(layout: Layout) -> list[int]:
    """How many keys each row sees, checked with the layout: C++ follows these numbers through memory."""
    lengths: list[int] = layout.lengths.tolist()
    expected = [*range(layout.start + 1, layout.context + 1), *(layout.context + len(p) for p in layout.ancestors)]
    assert lengths == expected, "a row sees the context, or the part before it, and its own path"
    assert all(0 <= slot < layout.used for path in layout.ancestors for slot in path), "a path lies in the cache"
    return lengths


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
