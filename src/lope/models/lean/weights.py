"""What a decoder reads, made ready to run: fused where rows read the same input, interleaved for RoPE, packed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from lope.core.errors import ModelError
from lope.models.coded_weight import CodedWeight, decoded, stacked
from lope.models.lean.config import DecoderConfig
from lope.models.lean.embedding import Embedding, TableEmbedding
from lope.models.lean.kernels import Kernels, kernels_for
from lope.models.lean.layer import Layer
from lope.models.lean.linear import Linear
from lope.models.lean.rope import Rotary, interleave


@dataclass(frozen=True, eq=False)
class Weights:
    """Everything that a decoder reads; shared by all that run it.

    The embedding may know more tokens than the head has rows: config.vocab_size counts the head's.
    """

    config: DecoderConfig
    dtype: torch.dtype
    device: torch.device
    embedding: Embedding
    layers: tuple[Layer, ...]
    norm: Tensor
    head: Linear
    rotary: Rotary = field(repr=False)
    kernels: Kernels = field(repr=False)

    @property
    def can_be_invariant(self) -> bool:
        """Whether the kernels here let a row's bits be the same in any pass."""
        return self.kernels.can_be_invariant(
            [*(linear for layer in self.layers for linear in layer.linears), self.head]
        )

    def truncated(self, layers: int) -> "Weights":
        """The first `layers` layers under the same norm and head."""
        return replace(self, config=replace(self.config, num_layers=layers), layers=self.layers[:layers])


def load_weights(
    config: DecoderConfig,
    stored: Mapping[str, Tensor | CodedWeight],
    dtype: torch.dtype,
    device: torch.device,
) -> Weights:
    """Take a checkpoint's tensors, one layer at a time (`stored` may read lazily)."""
    kernels = kernels_for(dtype, device)
    reader = WeightReader(stored, kernels, dtype, device)
    layers = tuple(reader.layer(config, f"model.layers.{number}.") for number in range(config.num_layers))
    embedded = stored["model.embed_tokens.weight"]
    table = decoded(embedded).to(device=device, dtype=dtype)
    head = kernels.pack(embedded if config.tied else stored["lm_head.weight"])
    norm = reader.numbers("model.norm.weight")
    rotary = Rotary(config, device)
    return Weights(config, dtype, device, TableEmbedding(table), layers, norm, head, rotary, kernels)


@dataclass(frozen=True, eq=False)
class WeightReader:
    """Makes layers of a checkpoint's tensors, which are read by name when they are asked for."""

    stored: Mapping[str, Tensor | CodedWeight]
    kernels: Kernels
    dtype: torch.dtype
    device: torch.device

    def numbers(self, name: str) -> Tensor:
        """A tensor in the dtype of the run, where it runs."""
        return decoded(self.stored[name]).to(device=self.device, dtype=self.dtype)

    def layer(self, config: DecoderConfig, at: str, attention_norm: str = "input_layernorm") -> Layer:
        """The layer whose tensors' names begin with `at`. attention_norm: the norm before attention."""
        norms: list[Tensor | None] = [None, None]
        if config.qk_norm:
            norms = [interleave(self.numbers(f"{at}self_attn.{x}_norm.weight"), config.head_dim) for x in "qk"]
        return Layer(
            attention_norm=self.numbers(f"{at}{attention_norm}.weight"),
            qkv=self._fused(at, [f"self_attn.{x}_proj" for x in "qkv"], config.head_dim, rotated=2),
            query_norm=norms[0],
            key_norm=norms[1],
            output=self._fused(at, ["self_attn.o_proj"]),
            mlp_norm=self.numbers(at + "post_attention_layernorm.weight"),
            gate_up=self._fused(at, [f"mlp.{x}_proj" for x in ("gate", "up")]),
            down=self._fused(at, ["mlp.down_proj"]),
        )

    def _fused(self, at: str, names: Sequence[str], head_dim: int = 0, rotated: int = 0) -> Linear:
        """One linear of all that read the same input; the rows of the first `rotated` are interleaved for RoPE."""

        def order(x: Tensor) -> Tensor:
            return interleave(x, head_dim)

        parts = [self.stored[f"{at}{name}.weight"] for name in names]
        for i in range(rotated):
            part = parts[i]
            parts[i] = part.reordered(order) if isinstance(part, CodedWeight) else order(part)
        biases = [self.numbers(f"{at}{name}.bias") for name in names if f"{at}{name}.bias" in self.stored]
        biases = [order(bias) if i < rotated else bias for i, bias in enumerate(biases)]
        if biases and len(biases) != len(parts):
            raise ModelError(f"{at}{names[0]} has a bias, but not all of its neighbours {names[1:]} do")
        return self.kernels.pack(stacked(parts), torch.cat(biases) if biases else None)
