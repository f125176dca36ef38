"""The lean decoder behind the door of all models."""

from collections.abc import Mapping

import torch
from torch import Tensor

from lope.core import checks
from lope.core.errors import UsageError
from lope.models.coded_weight import CodedWeight
from lope.models.lean.config import DecoderConfig
from lope.models.lean.decoder import Decoder
from lope.models.lean.draft_model import LeanDraftModel
from lope.models.lean.target import LeanTarget
from lope.models.lean.weights import Weights, load_weights


class LeanBackend:
    """A model of the Llama family run by lope's own decoder."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    @classmethod
    def load(
        cls,
        config: DecoderConfig,
        stored: Mapping[str, Tensor | CodedWeight],
        dtype: torch.dtype,
        device: torch.device,
    ) -> "LeanBackend":
        """Pack a checkpoint's tensors (read one layer at a time) for this dtype and device."""
        return cls(load_weights(config, stored, dtype, device))

    @property
    def config(self) -> DecoderConfig:
        """The sizes of the decoder."""
        return self._weights.config

    @property
    def vocab_size(self) -> int:
        """Columns of the logits."""
        return self._weights.config.vocab_size

    @property
    def context(self) -> int:
        """How many items a session can hold."""
        return self._weights.config.context

    @property
    def hidden_size(self) -> int:
        """Width of the hidden states."""
        return self._weights.config.hidden_size

    @property
    def num_layers(self) -> int:
        """Layers of the decoder."""
        return self._weights.config.num_layers

    @property
    def embedding(self) -> Tensor:
        """[V, hidden_size]: the token embeddings."""
        return self._weights.embedding.table

    def readout(self, tokens: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """The head's rows where it is the embedding again (a packed head cannot be read back), and the final norm."""
        return (self.embedding[tokens] if self._weights.config.tied else None), self._weights.norm

    @property
    def num_parameters(self) -> int:
        """How many numbers one pass reads."""
        return self._weights.config.num_parameters

    @property
    def dtype(self) -> str:
        """`float32`, `bfloat16` or `float16`."""
        return str(self._weights.dtype).removeprefix("torch.")

    @property
    def device(self) -> str:
        """Where it runs."""
        return str(self._weights.device)

    @property
    def kernels(self) -> str:
        """`native` (lope's own) or `torch`."""
        return self._weights.kernels.name

    @property
    def kernels_version(self) -> str:
        """Of lope's own: a fingerprint."""
        return self._weights.kernels.version

    @property
    def can_be_exact(self) -> bool:
        """Whether passes can be made row-invariant here."""
        return self._weights.can_be_invariant

    def target(self, exact: bool) -> LeanTarget:
        """The model as target. Raises UsageError where exactness cannot be had."""
        if exact and not self.can_be_exact:
            raise UsageError(
                f"exact passes need packed CPU linears that give a row the same bits in any pass; {self.dtype} on "
                f"{self.device} has none here: "
                "use float32 on the CPU, or run without exact"
            )
        return LeanTarget(Decoder(self._weights, invariant=exact))

    def draft_model(self) -> LeanDraftModel:
        """The model as an autoregressive drafter."""
        return LeanDraftModel(Decoder(self._weights, invariant=False))

    def truncated(self, layers: int) -> "LeanBackend":
        """Its first `layers` layers under the same norm and head."""
        checks.between("layers", layers, 1, self._weights.config.num_layers)
        return LeanBackend(self._weights.truncated(layers))
