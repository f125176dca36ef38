"""What the two trained drafters read, made ready to run beside their target: both borrow its embedding."""

from dataclasses import dataclass, replace

from torch import Tensor

from lope.models.drafter_folder import DrafterFolder
from lope.models.lean.config import DecoderConfig
from lope.models.lean.embedding import Embedding, ProjectedEmbedding, TableEmbedding
from lope.models.lean.kernels import Kernels, kernels_for
from lope.models.lean.linear import Linear
from lope.models.lean.rope import Rotary
from lope.models.lean.weights import WeightReader, Weights


@dataclass(frozen=True, eq=False)
class FeatureWeights:
    """A layer that reads hidden states of a target beside its tokens.

    decoder:    the layer with norm and head over the target's embedding; its attention_norm is that of hidden states.
    join:       [d, L·d], from the target's hidden states at L layers to one.
    token_norm: of the embedding that stands beside it.
    layers:     which hidden states of the target are read.
    """

    decoder: Weights
    join: Linear
    token_norm: Tensor
    layers: tuple[int, ...]


def standalone_weights(folder: DrafterFolder, table: Tensor) -> Weights:
    """A `standalone` drafter over the target's embedding `table` [V, dt], in its dtype and where it lies."""
    kernels = kernels_for(table.dtype, table.device)
    embedding = ProjectedEmbedding(table, kernels.pack(folder.stored["embed_projection.weight"]))
    return _weights(folder, folder.about.decoder, embedding, kernels, "input_layernorm")


def feature_weights(folder: DrafterFolder, table: Tensor, context: int) -> FeatureWeights:
    """An `eagle` drafter over the target's embedding `table` [V, d]. context: the target's, beside which it runs."""
    config, kernels = replace(folder.about.decoder, context=context), kernels_for(table.dtype, table.device)
    return FeatureWeights(
        decoder=_weights(folder, config, TableEmbedding(table), kernels, "hidden_norm"),
        join=kernels.pack(folder.stored["fc.weight"]),
        token_norm=folder.tensors["layers.0.input_layernorm.weight"].to(table),
        layers=folder.about.layers,
    )


def _weights(
    folder: DrafterFolder, config: DecoderConfig, embedding: Embedding, kernels: Kernels, attention_norm: str
) -> Weights:
    dtype, device, stored = embedding.table.dtype, embedding.table.device, folder.stored
    reader = WeightReader(stored, kernels, dtype, device)
    layers = tuple(reader.layer(config, f"layers.{number}.", attention_norm) for number in range(config.num_layers))
    norm, head = reader.numbers("norm.weight"), kernels.pack(stored["lm_head.weight"])
    return Weights(config, dtype, device, embedding, layers, norm, head, Rotary(config, device), kernels)
