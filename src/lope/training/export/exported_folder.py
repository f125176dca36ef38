"""An EAGLE-3 drafter as other engines read it: plain Hugging Face files, or those of the `speculators` library.

plain       `config.json` is that of a Llama with `draft_vocab_size` and a few more fields; written first by SafeAILab
            (Li et al. 2025, arXiv:2503.01840). vLLM, SGLang and llama.cpp read it.
speculators the Llama's fields stand in `transformer_layer_config`, EAGLE-3's beside it. vLLM, llama.cpp and the
            `speculators` library read it; SGLang does not.

K tokens kept by the head, V of the target, d hidden size, dt the target's: tensors are named in `shapes`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from lope.core.errors import ModelError
from lope.models.config_json import read_json
from lope.models.safetensors_shards import SafetensorsShards
from lope.training.export.trap import LLAMA_CPP, SGLANG, SPECULATORS, VLLM

PLAIN, SPECULATORS_FORM = "plain", "speculators"
FIRST_LAYER, OLD_FIRST_LAYER = "layers.0.", "midlayer."
_READERS = {PLAIN: (VLLM, SGLANG, LLAMA_CPP), SPECULATORS_FORM: (VLLM, LLAMA_CPP, SPECULATORS)}
_OF_SPECULATORS = ("speculators_model_type", "speculators_config", "transformer_layer_config")
LAYER_IDS = "eagle_aux_hidden_state_layer_ids"


@dataclass(frozen=True, eq=False)
class ExportedFolder:
    """A folder in one of the two forms, right or wrong. tensors: by the names in the file, read when asked for."""

    path: Path
    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def read(cls, path: Path) -> "ExportedFolder":
        """Read config and tensor names. Raises ModelError for a folder that holds no EAGLE-3 drafter."""
        if not (path / "config.json").is_file():
            raise ModelError(f"{path}: is no exported drafter: it has no config.json")
        config = read_json(path / "config.json")
        tensors = SafetensorsShards(path)
        folder = cls(path, config, tensors, tensors.shapes)
        if "fc.weight" not in tensors and "draft_vocab_size" not in config and folder.form == PLAIN:
            named = next(iter(config.get("architectures") or ()), config.get("model_type"))
            raise ModelError(f"{path}: is a {named}, no EAGLE-3 drafter: there is nothing of it to check")
        head = tensors.shapes.get("lm_head.weight", (1, 1))
        if len(head) != 2 or not head[0]:
            raise ModelError(
                f"{path}: lm_head.weight has shape {list(head)}, not one row for each token and one at least"
            )
        return folder

    @property
    def form(self) -> str:
        """`plain` or `speculators`."""
        return SPECULATORS_FORM if any(name in self.config for name in _OF_SPECULATORS) else PLAIN

    @property
    def readers(self) -> tuple[str, ...]:
        """Who reads this form."""
        return _READERS[self.form]

    @cached_property
    def llama(self) -> Mapping[str, Any]:
        """The fields of the Llama layer."""
        if self.form == PLAIN:
            return self.config
        found = self.config.get("transformer_layer_config")
        return found if isinstance(found, dict) else {}

    def size(self, name: str, default: int | None = None) -> int:
        """A whole number of the Llama layer. Raises ModelError where it is none."""
        value = self.llama.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            where = "" if self.form == PLAIN else "transformer_layer_config."
            raise ModelError(
                f"{self.path / 'config.json'}: {where}{name} must be a positive whole number, not {value!r}"
            )
        return value

    @property
    def kept(self) -> int:
        """K: the rows of the head, or what the configuration says where the file has none."""
        if "lm_head.weight" in self.shapes:
            return self.shapes["lm_head.weight"][0]
        declared = self.config.get("draft_vocab_size")
        return declared if isinstance(declared, int) else self.size("vocab_size")

    @property
    def target_width(self) -> int:
        """dt: how wide each hidden state of the target is."""
        width = self.config.get("target_hidden_size")
        return width if isinstance(width, int) and width > 0 else self.size("hidden_size")

    @property
    def top_layers(self) -> list[int] | None:
        """The target's layers as `config.json` names them at the top: k is the residual stream after k layers."""
        return _ids(self.config.get(LAYER_IDS))

    @property
    def nested_layers(self) -> list[int] | None:
        """The same inside `eagle_config`, where SGLang looks: there k is the output of layer k, one less."""
        nested = self.config.get("eagle_config")
        return _ids(nested.get(LAYER_IDS)) if isinstance(nested, dict) else None


def _ids(value: object) -> list[int] | None:
    return value if isinstance(value, list) and value and all(type(one) is int for one in value) else None
