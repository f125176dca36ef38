"""A draft model's logits in the target's vocabulary, where one of them is padded beyond the tokenizer they share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

from lope.core.prompt import Prompt
from lope.core.protocols import DraftModel, Step
from lope.core.rows import Rows
from lope.core.scores import Needs

M = TypeVar("M")
BesideT = TypeVar("BesideT", contravariant=True)


@dataclass(frozen=True, eq=False)
class FittedDraftModel(Generic[M, BesideT]):
    """`model` with rows over `size` tokens: columns beyond are cut off, missing ones are impossible."""

    model: DraftModel[M, BesideT]
    size: int

    @property
    def needs(self) -> Needs:
        """The model's."""
        return self.model.needs

    def open(self, prompt: Prompt, beside: BesideT) -> M:
        """A session of the model."""
        return self.model.open(prompt, beside)

    def fork(self, session: M, beside: BesideT) -> M:
        """An independent copy."""
        return self.model.fork(session, beside)

    def step(self, steps: Sequence[Step[M]]) -> list[tuple[Rows, Tensor | None]]:
        """One packed pass."""
        return [(self._fit(rows), hidden) for rows, hidden in self.model.step(steps)]

    def _fit(self, rows: Rows) -> Rows:
        if rows.size == self.size:
            return rows
        if rows.ids is None:
            values = rows.values[:, : self.size]
            width = values.shape[1]
            ids = None if width == self.size else torch.arange(width, device=values.device)
            return Rows(values, ids, self.size, rows.rest)
        assert rows.ids.dim() == 1, "a draft model holds the same columns in every row"
        inside = rows.ids < self.size
        return Rows(rows.values[:, inside], rows.ids[inside], self.size, rows.rest)
