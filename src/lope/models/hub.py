"""A model on the Hugging Face hub, by `owner/name`."""

from dataclasses import dataclass
from pathlib import Path

import huggingface_hub
import huggingface_hub.errors

from lope.core.errors import ModelError
from lope.models.folder import Folder
from lope.models.safetensors_shards import SafetensorsShards

_FILES = ("*.json", "model*.safetensors", "chat_template.jinja")


@dataclass(frozen=True)
class HubModel:
    """Files come from the hub's own cache where they are all there, else from the hub."""

    name: str

    def folder(self) -> Folder:
        """The folder that holds its files. Raises ModelError that says what to do when they cannot be had."""
        try:
            kept = Path(huggingface_hub.snapshot_download(self.name, local_files_only=True))
            SafetensorsShards(kept)
            return Folder(kept)
        except (huggingface_hub.errors.LocalEntryNotFoundError, ModelError):
            pass
        try:
            fetched = huggingface_hub.snapshot_download(self.name, allow_patterns=list(_FILES))
        except huggingface_hub.errors.RepositoryNotFoundError:
            raise ModelError(f"{self.name}: the hub has no model of that name that you may read") from None
        except Exception as error:  # noqa: BLE001 - the hub's client lets its transport's errors through
            reason = " ".join(str(error).split()).split(". ")[0][:200]
            raise ModelError(
                f"{self.name}: cannot be fetched from the Hugging Face hub, and is not in its cache: go online once, "
                f"or name a folder or a GGUF file ({type(error).__name__}: {reason})"
            ) from None
        return Folder(Path(fetched))
