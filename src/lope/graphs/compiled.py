"""Small C kernels, built once with the machine's own compiler where there is one; nothing needs them to run."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from numpy.typing import NDArray

from lope.core.errors import RunError, SettingError


def compiler() -> str | None:
    """The C compiler that would be used ($CC, cc, gcc or clang), or None."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and (found := shutil.which(name)):
            return found
    return None


def resolve_engine(engine: str) -> str:
    """`compiled` or `python`; `auto` is compiled where there is a compiler. Raises SettingError on any other name."""
    if engine not in ("auto", "compiled", "python"):
        raise SettingError(f"engine must be auto, compiled or python, not {engine!r}")
    if engine != "auto":
        return engine
    return "compiled" if compiler() else "python"


def call(source: Path, function: str, counts: tuple[int, ...], arrays: tuple[NDArray[Any], ...]) -> None:
    """Run `function(counts..., pointers...)` of a C file; it returns 0, or something else where memory ran out.

    Counts are int64; arrays must be C-contiguous and of the type that the function reads. Raises RunError.
    """
    assert all(array.flags.c_contiguous for array in arrays), "C reads rows one after another"
    entry = getattr(library(source), function)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    if entry(*(ctypes.c_int64(count) for count in counts), *pointers):
        raise RunError(f"{function}: no memory for {counts}")


def whole(values: NDArray[Any]) -> NDArray[np.int64]:
    """`values` as the contiguous int64 that the kernels read."""
    return np.ascontiguousarray(values, dtype=np.int64)


@cache
def library(source: Path) -> ctypes.CDLL:
    """The shared library of a C file, kept in the cache folder ($LOPE_HOME) under the hash of its text and compiler."""
    command = compiler()
    if command is None:
        raise RunError("engine=compiled needs a C compiler (cc, gcc or clang); use engine=python")
    folder = Path(os.environ.get("LOPE_HOME") or platformdirs.user_cache_dir("lope")) / "kernels"
    digest = hashlib.sha256(source.read_bytes() + command.encode()).hexdigest()[:16]
    target = folder / f"{source.stem}-{digest}.so"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            built = Path(scratch) / target.name
            asked = [command, "-O3", "-shared", "-fPIC", "-o", str(built), str(source), "-lm"]
            done = subprocess.run(asked, capture_output=True, text=True)
            if done.returncode:
                raise RunError(f"{command} could not build {source.name}: {done.stderr.strip()[:200]}")
            built.replace(target)
    return ctypes.CDLL(str(target))
