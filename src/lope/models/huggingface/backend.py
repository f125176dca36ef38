"""A transformers model behind the door of all models."""

import copy
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from lope.core import checks
from lope.core.errors import ModelError, UsageError
from lope.models.huggingface.admission import admit
from lope.models.huggingface.draft_model import HuggingFaceDraftModel
from lope.models.huggingface.packed_model import PackedModel
from lope.models.huggingface.target import HuggingFaceTarget
from lope.models.lean.config import DecoderConfig


class HuggingFaceBackend:
    """Any causal model of transformers whose layers all keep their whole past."""

    def __init__(self, model: Any) -> None:
        """model: a loaded `AutoModelForCausalLM`, on its device. Raises ModelError where it cannot run draft trees."""
        self._packed: PackedModel = admit(model)

    @classmethod
    def load(cls, source: str | Path, *, dtype: torch.dtype, device: torch.device) -> "HuggingFaceBackend":
        """Load a folder (or a hub name) of safetensors. Raises ModelError; no code of the folder is ever run."""
        try:
            model, report = transformers.AutoModelForCausalLM.from_pretrained(
                source, dtype=dtype, use_safetensors=True, trust_remote_code=False, output_loading_info=True
            )
        except Exception as error:  # transformers lets errors of every kind through
            reason = " ".join(str(error).split())[:300]
            raise ModelError(f"{source}: transformers cannot load it ({type(error).__name__}: {reason})") from error
        absent = sorted(report["missing_keys"])
        if absent:
            raise ModelError(f"{source}: has no tensor {absent[0]} ({len(absent)} are missing)")
        return cls(model.to(device))

    @property
    def vocab_size(self) -> int:
        """Columns of the logits."""
        return self._packed.vocab_size

    @property
    def context(self) -> int:
        """How many items a session can hold."""
        return self._packed.context

    @property
    def hidden_size(self) -> int:
        """Width of the hidden states."""
        return self._packed.hidden_size

    @property
    def num_layers(self) -> int:
        """Layers of the decoder."""
        return self._packed.num_layers

    @property
    def embedding(self) -> Tensor:
        """[V, hidden_size]: the token embeddings. Raises UsageError where the model has no such table."""
        table = getattr(self._packed.model.get_input_embeddings(), "weight", None)
        shape = self.vocab_size, self.hidden_size
        if not isinstance(table, Tensor) or tuple(table.shape) != shape:
            found = f"{list(table.shape)}" if isinstance(table, Tensor) else "none"
            name = type(self._packed.model).__name__
            raise UsageError(
                f"{name} has no table of token embeddings {list(shape)} ({found}): a drafter cannot borrow it"
            )
        return table.detach()

    @property
    def config(self) -> DecoderConfig:
        """Raises UsageError: transformers runs more kinds of decoders than these numbers can tell."""
        raise UsageError("a drafter that reads hidden states is trained beside lope's own decoder: leave out hf:")

    def readout(self, tokens: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Nothing that is sure to be plain."""
        return None, None

    @property
    def num_parameters(self) -> int:
        """How many numbers one pass reads: the embedding counts only where it is the head too (experts count all)."""
        model = self._packed.model
        embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
        total: int = sum(parameter.numel() for parameter in model.parameters())
        return total if embedding is head else total - embedding.numel()

    @property
    def dtype(self) -> str:
        """`float32`, `bfloat16` or `float16`."""
        return str(self._packed.dtype).removeprefix("torch.")

    @property
    def device(self) -> str:
        """Where it runs."""
        return str(self._packed.device)

    @property
    def kernels(self) -> str:
        """`transformers`."""
        return "transformers"

    @property
    def kernels_version(self) -> str:
        """None of our own."""
        return ""

    @property
    def can_be_exact(self) -> bool:
        """Never: how transformers' kernels sum depends on what else a pass holds."""
        return False

    def target(self, exact: bool) -> HuggingFaceTarget:
        """The model as target. Raises UsageError for `exact`."""
        if exact:
            raise UsageError(
                "exact passes are those of lope's own decoder: name the model without hf:, or run without exact"
            )
        return HuggingFaceTarget(self._packed)

    def draft_model(self) -> HuggingFaceDraftModel:
        """The model as an autoregressive drafter."""
        return HuggingFaceDraftModel(self._packed)

    def truncated(self, layers: int) -> "HuggingFaceBackend":
        """Its first `layers` layers under the same norm and head. Raises UsageError where the layers are not found."""
        checks.between("layers", layers, 1, self._packed.num_layers)
        model = self._packed.model
        prefix = model.base_model_prefix
        stack = getattr(getattr(model, prefix, None), "layers", None)
        if not isinstance(stack, torch.nn.ModuleList) or len(stack) != self._packed.num_layers:
            raise UsageError(f"{type(model).__name__} cannot be truncated: it has no list of layers {prefix}.layers")
        config = copy.deepcopy(model.config)
        config.num_hidden_layers = layers
        if getattr(config, "layer_types", None):
            config.layer_types = config.layer_types[:layers]
        base = _with(getattr(model, prefix), config, "layers", stack[:layers])
        return HuggingFaceBackend(_with(model, config, prefix, base))


def _with(module: Any, config: Any, name: str, child: torch.nn.Module) -> Any:
    """A copy of a module that shares all weights, with another configuration and one other child."""
    twin = copy.copy(module)
    twin.__dict__["_modules"] = {**module._modules, name: child}
    twin.config = config
    return twin
