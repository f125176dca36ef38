"""A table model as a draft model: another table, or one that resembles the target's."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from lope.core.draft import Draft
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Step
from lope.core.rows import Rows
from lope.core.scores import Needs, Scores
from lope.core.verdict import Verdict
from lope.models.table import TableModel


@dataclass(frozen=True)
class TableDraftModel:
    """Drafts by a table that is blind to the target. `vocabulary` and the rest are those of TableModel."""

    vocabulary: int = 4
    seed: int = 1
    spread: float = 1.0

    @cached_property
    def table(self) -> TableModel:
        """Where its logits stand."""
        return TableModel(self.vocabulary, self.seed, self.spread)

    @property
    def needs(self) -> Needs:
        """Nothing of the target's pass."""
        return Needs()

    def open(self, prompt: Prompt, beside: object) -> "TableDraftSession":
        """A session that knows the prompt's tokens."""
        return TableDraftSession(prompt.text())

    def fork(self, session: "TableDraftSession", beside: object) -> "TableDraftSession":
        """An independent copy."""
        return TableDraftSession(session.ids)

    def step(self, steps: Sequence[Step["TableDraftSession"]]) -> list[tuple[Rows, Tensor | None]]:
        """The logits of each request's frontier."""
        table = self.table
        rows = [table.after([step.session.ids + step.tree.words(node) for node in step.frontier]) for step in steps]
        return [(Rows(values, None, self.vocabulary, float("-inf")), None) for values in rows]


class TableDraftSession:
    """The tokens that have been committed."""

    def __init__(self, ids: Path) -> None:
        self.ids = ids

    def extend(self, prompt: Prompt) -> None:
        """Append the next turn's tokens."""
        self.ids += prompt.text()

    def commit(self, draft: Draft, scores: Scores, verdict: Verdict) -> None:
        """Append the emitted tokens."""
        self.ids += verdict.tokens
