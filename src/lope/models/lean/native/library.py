"""The compiled kernels, as Python calls them: which run is `$LOPE_KERNELS`' choice."""

import ctypes
import os
import sys
from pathlib import Path

from lope.core.errors import SettingError
from lope.models.cache_folder import CacheFolder
from lope.models.lean.native.builder import BuildError, KernelBuilder

CHOICES = ("auto", "native", "torch")


class Weight(ctypes.Structure):
    """`struct Weight` of linear.h."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("kind", "outputs", "inputs", "group", "wide")),
        *((name, ctypes.c_void_p) for name in ("panels", "scales", "minima", "row_scales", "bias")),
    )


class LayerAbout(ctypes.Structure):
    """`struct Layer` of layer.cpp."""

    _fields_ = (
        *((name, Weight) for name in ("qkv", "output", "gate_up", "down")),
        *((name, ctypes.c_void_p) for name in ("attention_norm", "query_norm", "key_norm", "mlp_norm")),
        ("eps", ctypes.c_float),
        *((name, ctypes.c_int32) for name in ("d", "h", "k", "w")),
    )


class PassAbout(ctypes.Structure):
    """`struct Pass` of layer.cpp."""

    _fields_ = (
        ("rows", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        *((name, ctypes.c_void_p) for name in ("sequence", "length", "slot", "context", "path", "paths", "rotations")),
        *((name, ctypes.c_void_p) for name in ("caches", "slots", "strides")),
    )


class Library:
    """The functions of layer.cpp; addresses are not checked here: `NativeLinear` and `NativePass` do.

    step: how panels of four-bit codes lie, 8 inputs in a word or 1 input in 8 bytes.
    version: changes with the sources, the compiler and its flags.
    """

    def __init__(self, path: Path) -> None:
        loaded = ctypes.CDLL(str(path))
        self.version = path.stem.partition("-")[0]
        self.step = int(loaded.lope_step())
        self.linear = loaded.lope_linear
        self.linear.restype = None
        self.linear.argtypes = [ctypes.POINTER(Weight), ctypes.c_int64, ctypes.c_int, *[ctypes.c_void_p] * 3]
        self.layers = loaded.lope_layers
        self.layers.restype = None
        self.layers.argtypes = [
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_int64,
            ctypes.POINTER(PassAbout),
            ctypes.c_int64,
            *[ctypes.c_void_p] * 3,
        ]
        self.norm = loaded.lope_norm
        self.norm.restype = None
        self.norm.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_float, *[ctypes.c_void_p] * 3]


def library(progress: bool = False) -> Library | None:
    """The kernels, built first where they are not; None where `$LOPE_KERNELS` is `torch`, or `auto` and none can be.

    progress: say on stderr that they are built, or why they cannot be. Raises SettingError for another value, and for
    `native` where they cannot be built.
    """
    asked = os.environ.get("LOPE_KERNELS") or "auto"
    if asked not in CHOICES:
        raise SettingError(f"LOPE_KERNELS must be {', '.join(CHOICES)}, not {asked!r}")
    if asked == "torch":
        return None
    found = _library(CacheFolder.default().root, progress)
    if isinstance(found, str) and asked == "native":
        raise SettingError(f"the native kernels cannot be built here: {found}")
    return None if isinstance(found, str) else found


def why_not() -> str | None:
    """Why there are no native kernels; None where there are."""
    if os.environ.get("LOPE_KERNELS") == "torch":
        return "LOPE_KERNELS is torch"
    found = _library(CacheFolder.default().root, False)
    return found if isinstance(found, str) else None


_loaded: dict[tuple[Path, str | None], Library | str] = {}


def _library(root: Path, progress: bool) -> Library | str:
    """The library, or one line that says why there is none; asked once in a process."""
    key = root, os.environ.get("CXX")
    if key not in _loaded:
        _loaded[key] = _found(root / "kernels", progress)
    return _loaded[key]


def _found(folder: Path, progress: bool) -> Library | str:
    def say(line: str) -> None:
        if progress:
            print(line, file=sys.stderr)  # noqa: T201 - seconds pass before anything else is shown

    try:
        builder = KernelBuilder.here(folder)
        return Library(builder.file() or builder.build(say))
    except BuildError as error:
        return str(error)
    except OSError as error:
        return f"{folder}: {error.strerror or error}"
