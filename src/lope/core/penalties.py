"""Penalties on seen tokens: repetition (prompt and output), frequency and presence (output only)."""

from collections import Counter
from dataclasses import dataclass

import torch
from torch import Tensor

from lope.core.prompt import Prompt


def columns_of(tokens: Tensor, ids: Tensor | None) -> tuple[Tensor, Tensor]:
    """Where `tokens` stand among held columns: (columns, which of the tokens they are)."""
    if ids is None:
        return tokens, torch.arange(len(tokens), device=tokens.device)
    match = ids[:, None] == tokens[None, :]
    columns, which = match.nonzero(as_tuple=True)
    return columns, which


@dataclass(frozen=True)
class RepetitionPenalty:
    """Keskar et al. 2019 (CTRL), as in transformers: a seen logit is divided by it if positive, else multiplied."""

    penalty: float

    def begin(self, prompt: Prompt) -> "_Seen":
        """Every word of the prompt counts as seen."""
        return _Seen(self.penalty, frozenset(prompt.text()))


@dataclass(frozen=True)
class _Seen:
    penalty: float
    tokens: frozenset[int]

    def advance(self, token: int) -> "_Seen":
        return self if token in self.tokens else _Seen(self.penalty, self.tokens | {token})

    def apply(self, values: Tensor, ids: Tensor | None) -> Tensor:
        columns, _ = columns_of(torch.tensor(sorted(self.tokens), dtype=torch.int64, device=values.device), ids)
        seen = values[columns]
        return values.index_put((columns,), torch.where(seen < 0, seen * self.penalty, seen / self.penalty))


@dataclass(frozen=True)
class CountPenalty:
    """OpenAI's penalties over generated tokens: logit − count·frequency − [count > 0]·presence."""

    frequency: float
    presence: float

    def begin(self, prompt: Prompt) -> "_Counted":
        """Nothing has been generated yet."""
        return _Counted(self, Counter())


@dataclass(frozen=True)
class _Counted:
    penalty: CountPenalty
    counts: "Counter[int]"

    def advance(self, token: int) -> "_Counted":
        return _Counted(self.penalty, self.counts + Counter((token,)))

    def apply(self, values: Tensor, ids: Tensor | None) -> Tensor:
        tokens = torch.tensor(list(self.counts), dtype=torch.int64, device=values.device)
        columns, which = columns_of(tokens, ids)
        counts = torch.tensor(list(self.counts.values()), dtype=values.dtype, device=values.device)[which]
        return values.index_put((columns,), values[columns] - counts * self.penalty.frequency - self.penalty.presence)
