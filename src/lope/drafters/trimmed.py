"""A draft model whose head says only some tokens (VocabTrim; Goel et al. 2025, arXiv:2506.22694).

A removed token has logit -inf in every row: it is never drafted, and the draft's law says so. Verification is as exact
as with a whole head.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from torch import Tensor

from lope.core.prompt import Prompt
from lope.core.protocols import DraftModel, Step
from lope.core.rows import Rows
from lope.core.scores import Needs

M = TypeVar("M")
BesideT = TypeVar("BesideT", contravariant=True)


@dataclass(frozen=True, eq=False)
class TrimmedDraftModel(Generic[M, BesideT]):
    """`model`, whose column c is token kept[c] of a vocabulary of `size`. kept: int64 [K], ascending."""

    model: DraftModel[M, BesideT]
    kept: Tensor
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
        ids = None if len(self.kept) == self.size else self.kept
        return [(Rows(rows.values, ids, self.size, rows.rest), hidden) for rows, hidden in self.model.step(steps)]
