"""The priority network: Topoformer, a perceptron to one number a node, and a known heuristic as a warm start.

    logits = scale · z + perceptron(Topoformer(features)),   z = the standardised heuristic of the problem

z is the critical path (schedules) or a memory heuristic (orders). `scale` is learned from 6 and the perceptron's last
layer begins at zero, so that training begins exactly at the untrained baseline "critical path + Gumbel noise", which is
hard to beat. Jeon et al. 2023 begin from nothing; `scale=0` with `trained_scale=False` is their model.
"""

from dataclasses import dataclass

import torch
from torch import nn

from lope.core.checks import at_least
from lope.graphs.learned.topoformer import Topoformer


@dataclass(frozen=True)
class NetworkShape:
    """Sizes of a priority network; `num_types` machine types have a one-hot feature each (0: a single type)."""

    num_features: int
    num_types: int = 0
    width: int = 64
    num_layers: int = 3
    head_width: int = 16
    heads_per_relation: int = 1
    scale: float = 6.0
    trained_scale: bool = True

    def __post_init__(self) -> None:
        for name in ("num_features", "width", "num_layers", "head_width", "heads_per_relation"):
            at_least(name, getattr(self, name), 1)


class PriorityNetwork(nn.Module):
    """One number per node: its logit."""

    def __init__(self, shape: NetworkShape) -> None:
        super().__init__()
        self.shape = shape
        self.encoder = Topoformer(
            shape.num_features,
            width=shape.width,
            num_layers=shape.num_layers,
            head_width=shape.head_width,
            heads_per_relation=shape.heads_per_relation,
        )
        last = nn.Linear(shape.width, 1)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.perceptron = nn.Sequential(nn.Linear(shape.width, shape.width), nn.ReLU(), last)
        self.scale = nn.Parameter(torch.tensor(float(shape.scale)), requires_grad=shape.trained_scale)

    def forward(self, features: torch.Tensor, relations: torch.Tensor, heuristic: torch.Tensor) -> torch.Tensor:
        """[n] logits from [n, F] features, additive [7, n, n] relations and the [n] standardised heuristic."""
        residual: torch.Tensor = self.perceptron(self.encoder(features, relations)).squeeze(-1)
        return self.scale * heuristic + residual
