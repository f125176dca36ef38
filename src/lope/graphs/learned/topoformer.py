"""Topoformer: a pre-norm transformer over a DAG whose heads each see one of seven relations (Gagrani et al. 2022,
arXiv 2207.05899, section 3.2; layer equations as restated in Zhang et al. 2023, appendix D, equations 26-28).

    h' = h + MHA(LN h);  h'' = h' + MLP(LN h'),  MLP = Linear(ReLU(Linear))

Rule for empty neighbourhoods: a softmax over nothing is taken as no message, so that head adds zero at that node.
"""

import torch
from torch import nn

# Shapes: n nodes, R = 7 relations, H heads per relation, D width of a head, F features, C width of a node.


class RelationAttention(nn.Module):
    """Attention in which head (r, h) attends only along relation r."""

    def __init__(self, width: int, head_width: int, heads_per_relation: int, num_relations: int = 7) -> None:
        super().__init__()
        self.shape = (num_relations, heads_per_relation, head_width)
        inner = num_relations * heads_per_relation * head_width
        self.query_key_value = nn.Linear(width, 3 * inner, bias=False)
        self.out = nn.Linear(inner, width)

    def forward(self, nodes: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        """[n, C] messages. `relations` is additive: 0 where u attends to v, -1e9 elsewhere."""
        n = len(nodes)
        query, key, value = self.query_key_value(nodes).view(n, 3, *self.shape).permute(1, 2, 3, 0, 4)  # each R H n D
        scores = query @ key.transpose(-1, -2) * self.shape[-1] ** -0.5 + relations[:, None]  # R H n n
        empty = relations.amax(-1) < 0  # R n
        messages = (scores.softmax(-1) @ value).masked_fill(empty[:, None, :, None], 0.0)  # R H n D
        mixed: torch.Tensor = self.out(messages.permute(2, 0, 1, 3).reshape(n, -1))
        return mixed


class Layer(nn.Module):
    """One pre-norm layer: relation attention, then a two-layer perceptron, each added to its input."""

    def __init__(self, width: int, head_width: int, heads_per_relation: int) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(width)
        self.attention = RelationAttention(width, head_width, heads_per_relation)
        self.norm_perceptron = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))

    def forward(self, nodes: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        """[n, C] -> [n, C]."""
        nodes = nodes + self.attention(self.norm_attention(nodes), relations)
        updated: torch.Tensor = nodes + self.perceptron(self.norm_perceptron(nodes))
        return updated


class Topoformer(nn.Module):
    """Embeds the nodes of one graph: `num_features` -> `width` through `num_layers` layers."""

    def __init__(
        self,
        num_features: int,
        *,
        width: int = 64,
        num_layers: int = 3,
        head_width: int = 16,
        heads_per_relation: int = 1,
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(num_features, width)
        self.layers = nn.ModuleList(Layer(width, head_width, heads_per_relation) for _ in range(num_layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, features: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        """[n, C] embeddings of [n, F] features under the additive [7, n, n] relations."""
        nodes = self.embed(features)
        for layer in self.layers:
            nodes = layer(nodes, relations)
        embedded: torch.Tensor = self.norm(nodes)
        return embedded


def additive(relations: torch.Tensor) -> torch.Tensor:
    """Boolean [7, n, n] relations as the float32 mask that `Topoformer` adds to its scores."""
    return torch.where(relations, 0.0, -1e9)
