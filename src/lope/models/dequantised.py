"""A GGUF file kept as Hugging Face folders in the cache, one per dtype: reading those takes a fraction of the time."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from lope.models.cache_folder import CacheFolder
from lope.models.checkpoint import Checkpoint
from lope.models.config_json import decoder_config
from lope.models.folder import Folder
from lope.models.folder_writer import write_folder
from lope.models.lean.config import DecoderConfig
from lope.models.safetensors_writer import num_bytes

_FORMAT = 1  # one more whenever write_folder writes something else: older folders are then left alone and not read


@dataclass(frozen=True)
class Dequantised:
    """The folders of one GGUF file. source: opens it; not called where a folder answers already."""

    cache: CacheFolder
    name: str
    source: Callable[[], Checkpoint]

    def config(self) -> DecoderConfig:
        """The decoder, from any folder there is, else from the source."""
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            path = self.cache.models / self._folder_name(dtype) / "config.json"
            if path.is_file():
                return decoder_config(path)
        return self.source().config

    def folder(self, dtype: torch.dtype) -> Folder:
        """The folder in this dtype; made first where it is not there. Raises ModelError."""
        name = self._folder_name(dtype)
        if (self.cache.models / name).is_dir():
            return Folder(self.cache.models / name)
        checkpoint = self.source()

        def write(path: Path) -> None:
            write_folder(path, checkpoint, dtype)

        size = num_bytes(checkpoint.shapes, dtype)
        return Folder(self.cache.model(name, write, num_bytes=size + 20_000_000))

    def _folder_name(self, dtype: torch.dtype) -> str:
        suffix = "" if _FORMAT == 1 else f"-{_FORMAT}"
        return f"{self.name}-{str(dtype).removeprefix('torch.')}{suffix}"
