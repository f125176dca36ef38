"""What a token looks like to a decoder: a row of its own table, or a row of another model's through a projection."""

from typing import Protocol

import torch.nn.functional as F
from torch import Tensor

from lope.models.lean.linear import Linear


class Embedding(Protocol):
    """Token ids int64 [r] -> rows [r, d]."""

    @property
    def table(self) -> Tensor:
        """What tokens are looked up in: [V, width]."""

    def __call__(self, tokens: Tensor) -> Tensor:
        """New rows, which may be written into."""


class TableEmbedding:
    """The rows of a table [V, d]."""

    def __init__(self, table: Tensor) -> None:
        self.table = table

    def __call__(self, tokens: Tensor) -> Tensor:
        """Look the rows up."""
        return F.embedding(tokens, self.table)


class ProjectedEmbedding:
    """The rows of a borrowed table [V, width], each through `projection` to [d]. Only rows looked up are projected."""

    def __init__(self, table: Tensor, projection: Linear) -> None:
        self.table = table
        self._projection = projection

    def __call__(self, tokens: Tensor) -> Tensor:
        """Look the rows up and project them."""
        return self._projection(F.embedding(tokens, self.table))
