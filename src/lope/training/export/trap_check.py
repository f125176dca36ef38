"""Every trap that a folder falls into, for each engine that would read it.

Read from the engines' own loaders: vLLM 0.33.0 (models/llama_eagle3.py, transformers_utils/configs/speculators),
SGLang 0.5.23 (models/llama_eagle3.py, models/llama.py), llama.cpp (conversion/llama.py, src/models/eagle3.cpp) and
speculators 0.9.0 (model.py).
"""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from lope.training.export.exported_folder import ExportedFolder
from lope.training.export.layer_traps import layer_traps
from lope.training.export.norm_traps import norm_traps
from lope.training.export.speculators_traps import speculators_traps
from lope.training.export.tensor_traps import tensor_traps
from lope.training.export.trap import Trap
from lope.training.export.vocabulary_traps import vocabulary_traps


@dataclass(frozen=True, eq=False)
class TrapCheck:
    """What was found in a folder. form: `plain` or `speculators`; readers: the engines that read it."""

    form: str
    readers: tuple[str, ...]
    traps: tuple[Trap, ...]

    @classmethod
    def of(cls, path: Path, *, num_layers: int | None = None, embedding: Tensor | None = None) -> "TrapCheck":
        """Check a folder. Raises ModelError where it holds no EAGLE-3 drafter, or damaged files.

        num_layers, embedding [V, dt]: of the target, where they are known; without them what depends on them is a trap.
        """
        folder = ExportedFolder.read(path)
        found = tuple(speculators_traps(folder))
        if not folder.llama:  # no sizes to hold anything else against
            return cls(folder.form, folder.readers, found)
        found += (
            *norm_traps(folder),
            *layer_traps(folder, num_layers),
            *vocabulary_traps(folder),
            *tensor_traps(folder, embedding),
        )
        return cls(folder.form, folder.readers, found)
