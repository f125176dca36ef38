"""What runs a model: the door through which the rest of lope reaches the lean decoder, or Hugging Face's."""

from typing import Any, Protocol

from torch import Tensor

from lope.core.protocols import DraftModel, Target
from lope.models.lean.config import DecoderConfig


class Backend(Protocol):
    """A loaded model that can serve as target and as drafter. Both share its weights."""

    @property
    def vocab_size(self) -> int:
        """Columns of the logits."""

    @property
    def context(self) -> int:
        """How many items a session can hold."""

    @property
    def hidden_size(self) -> int:
        """Width of the hidden states."""

    @property
    def num_layers(self) -> int:
        """Layers: hidden states are numbered from 0, the embedding, to this."""

    @property
    def embedding(self) -> Tensor:
        """[V, hidden_size]: the token embeddings, in the dtype that it runs in. Raises UsageError where it has none."""

    @property
    def config(self) -> DecoderConfig:
        """The sizes of the decoder. Raises UsageError where it is none of the Llama family."""

    def readout(self, tokens: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """The head's rows of `tokens` int64 [K], and the weight of the final norm; None for what is not plain."""

    @property
    def num_parameters(self) -> int:
        """How many numbers one pass reads."""

    @property
    def dtype(self) -> str:
        """`float32`, `bfloat16` or `float16`."""

    @property
    def device(self) -> str:
        """Where it runs, as torch writes it."""

    @property
    def kernels(self) -> str:
        """What computes: `native` (lope's own), `torch` or `transformers`."""

    @property
    def kernels_version(self) -> str:
        """What changes when they do, beside the version of torch; empty for torch's own."""

    @property
    def can_be_exact(self) -> bool:
        """Whether `target(exact=True)` can be had here."""

    def target(self, exact: bool) -> Target[Any]:
        """The model as target. `exact`: a token's logits depend on its path alone, bit for bit, in any pass."""

    def draft_model(self) -> DraftModel[Any, Any]:
        """The model as an autoregressive drafter with a cache of its own."""

    def truncated(self, layers: int) -> "Backend":
        """Its first `layers` layers with the same embedding, final norm and head, sharing the weights."""
