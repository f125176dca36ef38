"""A draft model's rows in the target's vocabulary, where the model's own columns are not the target's tokens."""

from collections.abc import Callable, Sequence
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
class RespelledDraftModel(Generic[M, BesideT]):
    """`model` with its rows respelled, by `Fitted` or `Trimmed`."""

    model: DraftModel[M, BesideT]
    respelled: Callable[[Rows], Rows]

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
        return [(self.respelled(rows), hidden) for rows, hidden in self.model.step(steps)]


@dataclass(frozen=True)
class Fitted:
    """Rows over `size` tokens, where one of the two vocabularies is padded: columns beyond are cut off, missing ones
    are impossible.
    """

    size: int

    def __call__(self, rows: Rows) -> Rows:
        """The rows over `size` tokens."""
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


@dataclass(frozen=True, eq=False)
class Trimmed:
    """Rows of a head that says only some tokens (VocabTrim; Goel et al. 2025, arXiv:2506.22694): column c is token
    kept[c] of a vocabulary of `size`. kept: int64 [K], ascending.

    A removed token has logit -inf in every row: it is never drafted, and the draft's law says so. Verification is as
    exact as with a whole head.
    """

    kept: Tensor
    size: int

    def __call__(self, rows: Rows) -> Rows:
        """The rows over the whole vocabulary."""
        ids = None if len(self.kept) == self.size else self.kept
        return Rows(rows.values, ids, self.size, rows.rest)
