"""A problem to learn from: a graph as the network reads it, how orders come from logits, and what an order costs."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from lope.graphs.graph import Floats, Ints
from lope.graphs.learned.topoformer import additive


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the network reads: features [n, F], boolean relations [7, n, n], the standardised heuristic [n]."""

    features: torch.Tensor
    relations: torch.Tensor
    heuristic: torch.Tensor

    def tensors(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The three arguments of `PriorityNetwork.forward`."""
        return self.features, additive(self.relations), self.heuristic


class Problem(Protocol):
    """One graph to train on or to solve."""

    @property
    def inputs(self) -> Inputs:
        """What the network reads."""
        ...

    @property
    def known_order(self) -> Ints:
        """[n] the order of the heuristic behind the warm start."""
        ...

    def sample(self, logits: Floats, num_orders: int, stream: np.random.Generator) -> Ints:
        """[num_orders, n] independent orders from the policy of `logits` [n]."""
        ...

    def greedy(self, logits: Floats) -> Ints:
        """[n] the order that the policy takes without chance."""
        ...

    def score(self, logits: Floats, orders: Ints, weights: Floats) -> Floats:
        """[n] Σ_k weights[k] · ∂ log P(orders[k]) / ∂ logits."""
        ...

    def costs(self, orders: Ints) -> Floats:
        """[num_orders] what each order costs; lower is better."""
        ...
