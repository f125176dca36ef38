"""Which dtype a model runs in: bfloat16 where a measured pass is faster in it, else float32."""

import itertools
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock
import torch
from torch import Tensor

from lope.core import json_reader
from lope.core.errors import SettingError
from lope.models.cache_folder import CacheFolder
from lope.models.lean.kernels import kernels_for
from lope.models.lean.linear import Linear
from lope.models.processor import processor

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_ROWS = (1, 16)
_NUMBERS = 32_000_000  # enough weights that they come from memory, as in a real pass, not from the processor's cache
_MOST_LAYERS = 32
_REPEATS = 3
_CLEARLY = 0.95  # bfloat16 loses digits: noise must not choose it


@dataclass(frozen=True)
class RunDtype:
    """Chooses by measuring once for each machine, torch, thread count and layer shape; remembers in `machine.json`."""

    cache: CacheFolder

    def choose(self, asked: str, hidden: int, wide: int, device: torch.device) -> torch.dtype:
        """The dtype named, or for `auto` the faster one. Raises SettingError that lists the names.

        hidden, wide: sizes of the model's residual stream and of its MLP.
        """
        if asked in DTYPES:
            return DTYPES[asked]
        if asked != "auto":
            raise SettingError(f"dtype must be auto, {', '.join(DTYPES)}, not {asked!r}")
        key = _fingerprint(hidden, wide, device)
        kept = self._kept().get("dtype", {}).get(key, {})
        if kept.get("dtype") not in DTYPES:
            kept = _measure(hidden, wide, device)
            self._keep(key, kept)
        return DTYPES[kept["dtype"]]

    @property
    def _path(self) -> Path:
        return self.cache.root / "machine.json"

    def _kept(self) -> dict[str, Any]:
        try:
            kept = json_reader.parsed(self._path.read_bytes())
        except (OSError, ValueError):  # absent or damaged: it is measured again
            return {}
        return kept if isinstance(kept, dict) and isinstance(kept.get("dtype", {}), dict) else {}

    def _keep(self, key: str, found: dict[str, Any]) -> None:
        """Write the file anew beside its place; a folder that cannot be written only means measuring again."""
        try:
            self.cache.root.mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(self.cache.root / ".machine.lock"):
                kept = self._kept()
                kept.setdefault("dtype", {})[key] = found
                partial = self._path.with_name(".machine.json.partial")
                partial.write_text(json.dumps(kept, indent=2) + "\n")
                partial.replace(self._path)
        except OSError:
            return


def _fingerprint(hidden: int, wide: int, device: torch.device) -> str:
    shape = f"{hidden}x{wide}"
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)} | torch {torch.__version__} | {shape}"
    kernels = kernels_for(torch.float32, device).name
    torchs = f"torch {torch.__version__} | {torch.get_num_threads()} threads, one measured"
    return f"{processor()} | {torchs} | {kernels} kernels | {shape}"


def _measure(hidden: int, wide: int, device: torch.device) -> dict[str, Any]:
    """Seconds for one layer's linears, one row and sixteen, both dtypes interleaved.

    Of many copies of each linear the fastest run counts, on one thread: other work on the machine only ever adds, and
    threads that wait for each other on a busy one add a hundredfold to one dtype and nothing to the other.
    """
    sides = [(hidden, hidden), (wide, hidden), (hidden, wide)]
    sides = [(max(1, min(rows, _NUMBERS // columns)), columns) for rows, columns in sides]
    copies = min(max(2, _NUMBERS // sum(rows * columns for rows, columns in sides)), _MOST_LAYERS)
    layers = {name: _layers(sides, copies, device, DTYPES[name]) for name in ("float32", "bfloat16")}
    fastest = {name: {rows: [math.inf] * len(sides) for rows in _ROWS} for name in layers}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for _, name, num_rows in itertools.product(range(_REPEATS), layers, _ROWS):
            inputs = [torch.ones(num_rows, columns, dtype=DTYPES[name], device=device) for _, columns in sides]
            for layer, place in itertools.product(layers[name], range(len(sides))):
                taken = _seconds(layer[place], inputs[place])
                fastest[name][num_rows][place] = min(fastest[name][num_rows][place], taken)
    finally:
        torch.set_num_threads(threads)
    seconds = {name: [sum(by_rows[rows]) for rows in _ROWS] for name, by_rows in fastest.items()}
    faster = sum(seconds["bfloat16"]) < _CLEARLY * sum(seconds["float32"])
    return {"dtype": "bfloat16" if faster else "float32", "rows": list(_ROWS), "seconds": seconds}


def _layers(
    sides: list[tuple[int, int]], copies: int, device: torch.device, dtype: torch.dtype
) -> list[tuple[Linear, ...]]:
    """Copies of a layer's linears, together too large for the processor's cache; weights as most models keep them."""
    kernels = kernels_for(dtype, device)
    return [
        tuple(kernels.pack(torch.full(side, 0.5, dtype=torch.bfloat16, device=device)) for side in sides)
        for _ in range(copies)
    ]


def _seconds(linear: Linear, x: Tensor) -> float:
    start = time.perf_counter()
    linear(x)
    if x.device.type == "cuda":
        torch.cuda.synchronize(x.device)
    return time.perf_counter() - start
