"""Turns a name into a loaded model."""

import functools
import hashlib
import re
from pathlib import Path
from typing import Any

import torch

from lope.core.errors import ModelError, SettingError
from lope.core.registry import Room
from lope.models.backend import Backend
from lope.models.cache_folder import CacheFolder
from lope.models.checkpoint import Checkpoint, Speech
from lope.models.config_json import read_json
from lope.models.dequantised import Dequantised
from lope.models.folder import Folder
from lope.models.lean.backend import LeanBackend
from lope.models.lean.config import DecoderConfig
from lope.models.lean.kernels import kernels_for
from lope.models.lean.native.library import library
from lope.models.loaded import LoadedModel
from lope.models.run_dtype import RunDtype

BUILT_IN = ("smollm2",)
# Imported on first use: a start that finds its model in the cache loads none of them
READERS = Room(
    "model reader",
    {
        "built-in": "lope.models.default_model:DefaultModel",
        "gguf": "lope.models.gguf_file:GgufFile",
        "hub": "lope.models.hub:HubModel",
        "hf": "lope.models.huggingface:HuggingFaceBackend",
    },
)
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


def load(
    name: str, *, dtype: str = "auto", device: str = "cpu", cache_dequantised: bool = False, progress: bool = True
) -> LoadedModel:
    """Load a model by name.

    name: `smollm2` (built in; fetched once), a Hugging Face folder, a GGUF file, or a hub name `owner/name`. With `hf:`
        before it, transformers runs the model (any causal model it knows) instead of lope's own decoder.
    dtype: `auto` (bfloat16 where a measured pass is faster in it, else float32), `float32`, `bfloat16`, `float16`.
    device: as torch writes it.
    cache_dequantised: keep a GGUF file's weights in the cache folder as they are run, for faster starts.
    progress: show bars on stderr while something is fetched.
    Raises ModelError for anything that cannot be loaded, SettingError for an unknown dtype or device.
    """
    cache, place = CacheFolder.default(), _device(device)
    adapted, plain = name.startswith("hf:"), name.removeprefix("hf:")
    source = _source(plain, cache, keep=cache_dequantised or adapted, progress=progress)
    if adapted:
        return _by_transformers(name, source, dtype, place, cache)
    if place.type == "cpu":
        library(progress)
    if isinstance(source, Dequantised):
        chosen = _dtype(dtype, source.config(), place, cache)
        coded = kernels_for(chosen, place).reads_codes
        checkpoint: Checkpoint = source.source() if coded else source.folder(chosen).checkpoint()
    else:
        checkpoint = source.checkpoint()
        chosen = _dtype(dtype, checkpoint.config, place, cache)
    backend = LeanBackend.load(checkpoint.config, checkpoint.stored, chosen, place)
    return _loaded(name, backend, checkpoint.speech)


def open_checkpoint(name: str, *, progress: bool = True) -> Checkpoint:
    """A model by name, as `load` takes it, understood but not loaded: tensors are read when they are asked for.

    Raises ModelError for what cannot be opened.
    """
    source = _source(name.removeprefix("hf:"), CacheFolder.default(), keep=False, progress=progress)
    checkpoint: Checkpoint = source.source() if isinstance(source, Dequantised) else source.checkpoint()
    return checkpoint


def _source(name: str, cache: CacheFolder, *, keep: bool, progress: bool) -> Any:
    """A folder, an open GGUF file, or a GGUF file that is kept dequantised. Raises ModelError."""
    if name in BUILT_IN:
        return Dequantised(
            cache, name, functools.cache(lambda: READERS.part("built-in")(cache, name, progress=progress).checkpoint())
        )
    path = Path(name).expanduser()
    if name and path.is_dir():
        return Folder(path)
    if path.is_file():
        _check_kind(path)
        file = READERS.part("gguf")(path)
        return Dequantised(cache, _cache_name(path), functools.cache(file.checkpoint)) if keep else file
    if path.suffix == ".gguf" or name.startswith(("/", ".", "~")) or not _HUB_NAME.fullmatch(name):
        raise ModelError(
            f"no model {name!r}: there is no such file or folder, and it is no built-in name ({', '.join(BUILT_IN)}) "
            "and no hub name (owner/name)"
        )
    return READERS.part("hub")(name).folder()


def _check_kind(path: Path) -> None:
    """Say what a file is that cannot be loaded, and what can."""
    if path.suffix == ".safetensors":
        raise ModelError(f"{path}: is one file of a model; name its folder, which holds config.json and tokenizer.json")
    if path.suffix in (".bin", ".pt", ".pth", ".ckpt", ".pkl"):
        raise ModelError(
            f"{path}: pickles are never loaded (they can run code); a folder of safetensors or a GGUF file can be"
        )
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelError(f"{path}: is not a GGUF file; a folder of safetensors or a GGUF file can be loaded")


def _cache_name(path: Path) -> str:
    """Changes when the file does."""
    about = path.resolve().stat()
    content = f"{path.resolve()} {about.st_size} {about.st_mtime_ns}".encode()
    return f"{path.stem}-{hashlib.sha256(content).hexdigest()[:12]}"


def _device(text: str) -> torch.device:
    try:
        device = torch.device(text)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0].partition(". ")[0][:160] if str(error) else type(error).__name__
        raise SettingError(f"device {text!r} cannot be used here: {reason}") from None
    return device


def _dtype(asked: str, config: DecoderConfig, device: torch.device, cache: CacheFolder) -> torch.dtype:
    return RunDtype(cache).choose(asked, config.hidden_size, config.intermediate_size, device)


def _loaded(name: str, backend: Backend, speech: Speech) -> LoadedModel:
    return LoadedModel(name, backend, speech.tokenizer, speech.template, speech.stop_tokens)


def _by_transformers(name: str, source: Any, asked: str, device: torch.device, cache: CacheFolder) -> LoadedModel:
    """The model run by transformers: any architecture, so only the sizes that choose the dtype are read here."""
    if isinstance(source, Dequantised):
        source = source.folder(_dtype(asked, source.config(), device, cache))
    sizes = read_json(source.path / "config.json")
    hidden, wide = (sizes.get(key) for key in ("hidden_size", "intermediate_size"))
    hidden = hidden if isinstance(hidden, int) and hidden > 0 else 1024
    wide = wide if isinstance(wide, int) and wide > 0 else 4 * hidden
    chosen = RunDtype(cache).choose(asked, hidden, wide, device)
    backend = READERS.part("hf").load(source.path, dtype=chosen, device=device)
    return _loaded(name, backend, source.speech())
