"""The compiled kernels: built once for this processor by its own C++ compiler, kept in the cache folder."""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import filelock
import torch

from lope.core.errors import SettingError
from lope.models.cache_folder import CacheFolder

_SOURCES = ("vectors.h", "linear.h", "layer.cpp")
# no contraction: a product and its sum are rounded where the source says so, the same in every kernel
_FLAGS = ("-O2", "-std=c++17", "-ffp-contract=off", "-fno-math-errno", "-fopenmp", "-fPIC")
# by what torch found: a compiler's own idea of a virtual processor may hold instructions that it refuses
_AVX2 = ("-mavx2", "-mfma", "-mf16c")
_INSTRUCTIONS = {"AVX2": _AVX2, "AVX512": (*_AVX2, "-mavx512f")}
_SECONDS = 300
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
        *(
            (name, ctypes.c_void_p)
            for name in ("sequence", "length", "slot", "context", "path", "paths", "rotations", "caches", "slots")
        ),
    )


class Library:
    """The functions of layer.cpp; addresses are not checked here: `NativeLinear` and `NativePass` do."""

    def __init__(self, path: Path) -> None:
        loaded = ctypes.CDLL(str(path))
        self.linear = loaded.lope_linear
        self.linear.restype = None
        self.linear.argtypes = [ctypes.POINTER(Weight), ctypes.c_int64, ctypes.c_int, *[ctypes.c_void_p] * 3]
        self.layer = loaded.lope_layer
        self.layer.restype = None
        self.layer.argtypes = [ctypes.POINTER(LayerAbout), ctypes.POINTER(PassAbout), *[ctypes.c_void_p] * 3]


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
    """A failure to build is remembered beside where the library would be."""
    compiler = _compiler()
    if compiler is None:
        return "no C++ compiler is there (c++, g++, clang++, or what $CXX names)"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{_fingerprint(compiler)}.so"
        failed = path.with_suffix(".failed")
        with filelock.FileLock(path.with_suffix(".lock")):
            found = _opened(path)
            if found is None and not failed.exists():
                _say("building kernels for this processor (once)", progress)
                path.unlink(missing_ok=True)
                _build(compiler, path, failed)
                found = _opened(path)
                if failed.exists():
                    _say(f"they cannot be built, torch's run instead: {failed.read_text().strip()}", progress)
        return found or failed.read_text().strip()
    except OSError as error:
        return f"{folder}: {error.strerror or error}"


def _opened(path: Path) -> Library | None:
    """None where there is none, or a damaged one."""
    try:
        return Library(path)
    except (OSError, AttributeError):
        return None


def _say(line: str, progress: bool) -> None:
    if progress:
        print(line, file=sys.stderr)  # noqa: T201 - seconds pass before anything else is shown


def _compiler() -> tuple[str, ...] | None:
    try:
        asked = shlex.split(os.environ.get("CXX", ""))
    except ValueError:  # a quotation that does not end
        return None
    for words in [asked] if asked else [["c++"], ["g++"], ["clang++"]]:
        found = shutil.which(words[0])
        if found:
            return found, *words[1:]
    return None


def _fingerprint(compiler: Sequence[str]) -> str:
    """Changes with the sources, the compiler, the instructions and the torch whose threads are shared."""
    program = Path(compiler[0]).resolve()
    parts = [*_flags(), *compiler, str(program), str(program.stat().st_mtime_ns), platform.machine(), torch.__version__]
    parts += [(Path(__file__).parent / name).read_text() for name in _SOURCES]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _build(compiler: Sequence[str], path: Path, failed: Path) -> None:
    """Compile, link with the OpenMP that torch has loaded (two pools of threads would wait for each other), rename."""
    part, source = path.with_suffix(f".{os.getpid()}.o"), Path(__file__).parent / "layer.cpp"
    linked = path.with_suffix(f".{os.getpid()}.partial")
    runtime = sorted((Path(torch.__file__).parent / "lib").glob("lib*omp*"))
    try:
        _run([*compiler, *_flags(), "-c", str(source), "-o", str(part)])
        _run(
            [*compiler, "-shared", str(part), *(map(str, runtime[:1]) if runtime else ["-fopenmp"]), "-o", str(linked)]
        )
        linked.replace(path)
    except (subprocess.SubprocessError, OSError) as error:
        said = getattr(error, "stderr", None) or str(error)
        lines = [line for line in said.splitlines() if "error" in line] or said.splitlines() or [type(error).__name__]
        failed.write_text(f"{compiler[0]}: {lines[0][:200]}\n")
    finally:
        part.unlink(missing_ok=True)
        linked.unlink(missing_ok=True)


def _flags() -> tuple[str, ...]:
    return *_FLAGS, *_INSTRUCTIONS.get(torch.backends.cpu.get_cpu_capability(), ())


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS)
