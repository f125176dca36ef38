"""Biases and masks that do not depend on which tokens came before, only on how many."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lope.core.errors import SettingError
from lope.core.penalties import columns_of
from lope.core.prompt import Prompt


@dataclass(frozen=True, eq=False)
class LogitBias:
    """Adds a number to the logit of each named token; -inf forbids it."""

    bias: dict[int, float]

    def begin(self, prompt: Prompt) -> "LogitBias":
        """The same at every position."""
        return self

    def advance(self, token: int) -> "LogitBias":
        """The same at every position."""
        return self

    def apply(self, values: Tensor, ids: Tensor | None) -> Tensor:
        """Add the biases."""
        tokens = torch.tensor(list(self.bias), dtype=torch.int64, device=values.device)
        if ids is None and int(tokens.max()) >= values.shape[0]:
            raise SettingError(f"logit_bias names token {int(tokens.max())}, but the vocabulary has {values.shape[0]}")
        columns, which = columns_of(tokens, ids)
        bias = torch.tensor(list(self.bias.values()), dtype=values.dtype, device=values.device)[which]
        return values.index_put((columns,), values[columns] + bias)


@dataclass(frozen=True)
class AllowedTokens:
    """Forbids every token that is not named."""

    tokens: tuple[int, ...]

    def begin(self, prompt: Prompt) -> "AllowedTokens":
        """The same at every position."""
        return self

    def advance(self, token: int) -> "AllowedTokens":
        """The same at every position."""
        return self

    def apply(self, values: Tensor, ids: Tensor | None) -> Tensor:
        """Keep the named tokens' logits; the others become -inf."""
        tokens = torch.tensor(self.tokens, dtype=torch.int64, device=values.device)
        if ids is None and int(tokens.max()) >= values.shape[0]:
            raise SettingError(
                f"allowed_tokens names token {int(tokens.max())}, but the vocabulary has {values.shape[0]}"
            )
        columns, _ = columns_of(tokens, ids)
        kept = torch.full_like(values, float("-inf"))
        kept[columns] = values[columns]
        return kept


@dataclass(frozen=True)
class MinNewTokens:
    """Forbids the stop tokens until `count` tokens have been generated."""

    count: int
    stop_tokens: tuple[int, ...]

    def begin(self, prompt: Prompt) -> "MinNewTokens":
        """All of them are still to come."""
        return self

    def advance(self, token: int) -> "MinNewTokens":
        """One fewer to come."""
        return MinNewTokens(max(0, self.count - 1), self.stop_tokens)

    def apply(self, values: Tensor, ids: Tensor | None) -> Tensor:
        """Mask the stop tokens while tokens are still owed."""
        if not self.count:
            return values
        columns, _ = columns_of(torch.tensor(self.stop_tokens, dtype=torch.int64, device=values.device), ids)
        return values.index_fill(0, columns, float("-inf"))
