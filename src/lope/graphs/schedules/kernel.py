"""The compiled list scheduler: builds `kernel.c` once with the machine's own C compiler, where there is one.

Nothing needs it: without a compiler the same makespans come from Python processes (`batch.py`), 20 to 50 times slower.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import platformdirs

from lope.core.errors import RunError
from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.ticks import whole_ticks

SOURCE = Path(__file__).with_name("kernel.c")


def compiler() -> str | None:
    """The C compiler that would build the kernel ($CC, cc, gcc or clang), or None."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and (found := shutil.which(name)):
            return found
    return None


def compiled_makespans(graph: Graph, machines: Machines, orders: Ints) -> Floats:
    """[num_orders] makespans of checked `orders` ([num_orders, n]). Raises RunError if the kernel cannot be built."""
    ticks, size = whole_ticks(graph.durations)
    rows = np.ascontiguousarray(orders, dtype=np.int32)
    arrays = [ticks, graph.resources, graph.machine_types, machines.array]
    arrays += [graph.successor_starts, graph.successor_nodes, graph.in_degrees]
    held = [np.ascontiguousarray(array) for array in arrays]
    found = np.empty(len(rows))
    counts = [ctypes.c_int64(count) for count in (len(rows), graph.num_nodes, len(machines.capacities))]
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (rows, *held, found)]
    if _library().lope_makespans(*counts, *pointers):
        raise RunError(f"{graph.name}: no memory for the list scheduler")
    return found * size


@cache
def _library() -> ctypes.CDLL:
    """The shared library, built into the cache folder ($LOPE_HOME) under the hash of its source."""
    command = compiler()
    if command is None:
        raise RunError("the compiled list scheduler needs a C compiler (cc, gcc or clang); use engine=python")
    folder = Path(os.environ.get("LOPE_HOME") or platformdirs.user_cache_dir("lope")) / "kernels"
    digest = hashlib.sha256(SOURCE.read_bytes() + command.encode()).hexdigest()[:16]
    target = folder / f"list-{digest}.so"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            built = Path(scratch) / "kernel.so"
            done = subprocess.run(
                [command, "-O3", "-shared", "-fPIC", "-o", str(built), str(SOURCE)], capture_output=True, text=True
            )
            if done.returncode:
                raise RunError(f"{command} could not build the list scheduler: {done.stderr.strip()[:200]}")
            os.replace(built, target)
    return ctypes.CDLL(str(target))
