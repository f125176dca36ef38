"""A model on disk, understood but not yet loaded: what it is made of, its tensors on demand, how it speaks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from lope.core.errors import ModelError
from lope.models.chat_template import ChatTemplate
from lope.models.coded_weight import CodedWeight
from lope.models.lean.config import DecoderConfig
from lope.models.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class Speech:
    """How a model reads and writes text.

    template:    None where it has none (base models).
    stop_tokens: ids that end an answer.
    names:       `bos_token`, `eos_token`, ... -> text, as a tokenizer_config.json names them.
    """

    tokenizer: Tokenizer
    template: ChatTemplate | None
    stop_tokens: frozenset[int]
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model on disk.

    where:   the file or folder, for messages.
    tensors: Hugging Face name -> tensor, read when asked for; q/k rows in Hugging Face's half-split RoPE layout.
    shapes:  the shape of each, known without reading it.
    coded:   the same tensors in the file's own codes where it has such; None: they are not coded.
    """

    where: str
    config: DecoderConfig
    tensors: Mapping[str, Tensor]
    shapes: Mapping[str, tuple[int, ...]]
    speech: Speech
    coded: Mapping[str, Tensor | CodedWeight] | None = None

    @property
    def stored(self) -> Mapping[str, Tensor | CodedWeight]:
        """Every tensor as the file keeps it: codes where it has such, else numbers of the file's own dtype."""
        return self.tensors if self.coded is None else self.coded

    def __post_init__(self) -> None:
        self._check_shapes()
        rows, size = self.config.vocab_size, self.speech.tokenizer.vocab_size
        if size > rows:
            raise ModelError(f"{self.where}: the tokenizer has {size} tokens, the embedding only {rows} rows")
        beyond = [token for token in sorted(self.speech.stop_tokens) if not 0 <= token < rows]
        if beyond:
            raise ModelError(f"{self.where}: stop token {beyond[0]} is not among the {rows} tokens")

    def _check_shapes(self) -> None:
        """Compare what is there with what must be, before anything is allocated."""
        if self.config.num_layers > len(self.shapes):
            raise ModelError(
                f"{self.where}: {len(self.shapes)} tensors are too few for {self.config.num_layers} layers"
            )
        expected = self.config.shapes()
        for name, shape in expected.items():
            if name not in self.shapes:
                raise ModelError(f"{self.where}: tensor {name} is missing")
            if tuple(self.shapes[name]) != shape:
                raise ModelError(f"{self.where}: tensor {name} has shape {list(self.shapes[name])}, not {list(shape)}")
        for name in self.shapes:
            if name not in expected:
                raise ModelError(f"{self.where}: tensor {name} does not belong to a {self.config.architecture}")
