"""The files of a model that peers can read: a Hugging Face folder and, where it comes from one, its GGUF file."""

import functools
import hashlib
from pathlib import Path

import torch

from lope.models.cache_folder import CacheFolder
from lope.models.default_model import DefaultModel
from lope.models.dequantised import Dequantised
from lope.models.gguf_file import GgufFile
from lope.models.hub import HubModel
from lope.models.loading import BUILT_IN


def model_files(name: str, dtype: str) -> dict[str, Path | None]:
    """`folder` and `gguf` of a model by its name; the folder of a GGUF file is made in the cache. Raises ModelError."""
    cache, plain = CacheFolder.default(), name.removeprefix("hf:")
    wanted: torch.dtype = getattr(torch, dtype)
    if plain in BUILT_IN:
        built_in = DefaultModel(cache, plain, progress=False)
        kept = Dequantised(cache, plain, functools.cache(built_in.checkpoint))
        return {"folder": kept.folder(wanted).path, "gguf": built_in.gguf()}
    path = Path(plain).expanduser()
    if path.is_file():
        about = path.resolve().stat()
        mark = hashlib.sha256(f"{path.resolve()} {about.st_size} {about.st_mtime_ns}".encode()).hexdigest()[:12]
        kept = Dequantised(cache, f"{path.stem}-{mark}", functools.cache(GgufFile(path).checkpoint))
        return {"folder": kept.folder(wanted).path, "gguf": path}
    return {"folder": path if path.is_dir() else HubModel(plain).folder().path, "gguf": None}
