"""What a decoder reads, made ready to run: fused where rows read the same input, interleaved for RoPE, packed."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from lope.core.errors import ModelError
from lope.models.lean.config import DecoderConfig
from lope.models.lean.embedding import Embedding, TableEmbedding
from lope.models.lean.layer import Layer
from lope.models.lean.linear import Linear, can_pack, has_bfloat16, pack
from lope.models.lean.rope import Rotary, interleave
from lope.models.lean.row_probe import RowProbe


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
    probe: RowProbe = field(default_factory=RowProbe, repr=False)

    @property
    def can_be_invariant(self) -> bool:
        """Whether the kernels here let a row's bits be the same in any pass.

        Where the CPU only emulates bfloat16 they do not: attention rounds by the shape of the pass.
        """
        if self.dtype == torch.bfloat16 and not has_bfloat16():
            return False
        linears = [linear for layer in self.layers for linear in layer.linears]
        return can_pack(self.dtype, self.device) and self.probe.all_invariant([*linears, self.head])

    def truncated(self, layers: int) -> "Weights":
        """The first `layers` layers under the same norm and head."""
        return replace(self, config=replace(self.config, num_layers=layers), layers=self.layers[:layers])


def load_weights(
    config: DecoderConfig, tensors: Mapping[str, Tensor], dtype: torch.dtype, device: torch.device
) -> Weights:
    """Take a checkpoint's tensors, one layer at a time (`tensors` may read lazily)."""

    def read(name: str) -> Tensor:
        return tensors[name].to(device=device, dtype=dtype)

    held = config.shapes()
    layers = tuple(load_layer(config, read, held, f"model.layers.{number}.") for number in range(config.num_layers))
    table = read("model.embed_tokens.weight")
    head = pack(table if config.tied else read("lm_head.weight"))
    norm = read("model.norm.weight")
    return Weights(config, dtype, device, TableEmbedding(table), layers, norm, head, Rotary(config, device))


def load_layer(
    config: DecoderConfig,
    read: Callable[[str], Tensor],
    held: Container[str],
    at: str,
    attention_norm: str = "input_layernorm",
) -> Layer:
    """The layer whose tensors' names begin with `at`. held: all names. attention_norm: the norm before attention."""

    def fused(names: Sequence[str], rotated: int = 0) -> Linear:
        parts = [read(f"{at}{name}.weight") for name in names]
        parts = [interleave(p, config.head_dim) if i < rotated else p for i, p in enumerate(parts)]
        biases = [read(f"{at}{name}.bias") for name in names if f"{at}{name}.bias" in held]
        biases = [interleave(b, config.head_dim) if i < rotated else b for i, b in enumerate(biases)]
        if biases and len(biases) != len(parts):
            raise ModelError(f"{at}{names[0]} has a bias, but not all of its neighbours {names[1:]} do")
        return pack(torch.cat(parts), torch.cat(biases) if biases else None)

    norms: list[Tensor | None] = [None, None]
    if config.qk_norm:
        norms = [interleave(read(f"{at}self_attn.{x}_norm.weight"), config.head_dim) for x in "qk"]
    return Layer(
        attention_norm=read(f"{at}{attention_norm}.weight"),
        qkv=fused([f"self_attn.{x}_proj" for x in "qkv"], rotated=2),
        query_norm=norms[0],
        key_norm=norms[1],
        output=fused(["self_attn.o_proj"]),
        mlp_norm=read(at + "post_attention_layernorm.weight"),
        gate_up=fused([f"mlp.{x}_proj" for x in ("gate", "up")]),
        down=fused(["mlp.down_proj"]),
    )
