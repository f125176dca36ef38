"""A random table of logits as a target: the law of a whole answer can be written down, so laws can be checked on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from lope.core import checks
from lope.core.draft import ROOT, Draft
from lope.core.errors import UsageError
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Job
from lope.core.rows import Rows
from lope.core.scores import Needs, Scores
from lope.core.verdict import Verdict


@dataclass(frozen=True)
class TableModel:
    """An order-2 Markov chain: the next token's logits depend on the last two tokens. float64; no cache, no weights.

    vocabulary: V, at least 4 (with three tokens some faults stay hidden).
    spread:     standard deviation of the logits.
    context:    how many items a session takes.
    """

    vocabulary: int = 4
    seed: int = 0
    spread: float = 1.0
    context: int = 1 << 16

    def __post_init__(self) -> None:
        checks.at_least("vocabulary", self.vocabulary, 4)
        checks.above("spread", self.spread, 0.0)
        checks.at_least("context", self.context, 1)

    @cached_property
    def table(self) -> Tensor:
        """[V + 1, V + 1, V]: logits after (last but one, last); index V stands for "nothing came before"."""
        generator = torch.Generator().manual_seed(self.seed)
        size = self.vocabulary
        return self.spread * torch.randn(size + 1, size + 1, size, generator=generator, dtype=torch.float64)

    def after(self, contexts: Sequence[Path]) -> Tensor:
        """[len(contexts), V]: the logits after each of these token sequences."""
        pairs = torch.tensor([((self.vocabulary,) * 2 + context)[-2:] for context in contexts], dtype=torch.int64)
        return self.table[pairs[:, 0], pairs[:, 1]]

    def open(self, prompt: Prompt) -> "TableSession":
        """A session whose whole prompt is pending."""
        session = TableSession(self, (), 0)
        session.extend(prompt)
        return session

    def score(self, jobs: Sequence[Job["TableSession"]]) -> list[Scores]:
        """Look the rows up."""
        return [self._score(job.session, job.draft, job.needs) for job in jobs]

    def _score(self, session: "TableSession", draft: Draft, needs: Needs) -> Scores:
        if needs.layers:
            raise UsageError("the table model has no layers, so no drafter can read its hidden states")
        ends = [session.ids + draft.words(node) for node in (ROOT, *range(len(draft)))]
        start = len(session.ids) - session.pending
        before = [session.ids[:end] for end in range(start + 1, len(session.ids))]
        context_logits = largest(self.after(before), needs.context_logits) if needs.context_logits and before else None
        return Scores(largest(self.after(ends), needs.logits), session.pending, {}, context_logits)


class TableSession:
    """One request's context in a table: its ids, and how many of them came since the last commit."""

    def __init__(self, model: TableModel, ids: Path, pending: int) -> None:
        self._model = model
        self.ids = ids
        self.pending = pending

    @property
    def room(self) -> int:
        """How many more items the context can take."""
        return self._model.context - len(self.ids)

    def extend(self, prompt: Prompt) -> None:
        """Append items; they are pending. Raises UsageError for images, foreign ids and a full context."""
        if prompt.spans:
            raise UsageError("the table model reads tokens only")
        if any(not 0 <= token < self._model.vocabulary for token in prompt.ids):
            raise UsageError(f"a prompt for the table model holds ids from 0 to {self._model.vocabulary - 1}")
        if len(prompt.ids) > self.room:
            raise UsageError(f"the prompt has {len(prompt.ids)} tokens, but the context has room for {self.room}")
        self._append(prompt.ids, len(prompt.ids))

    def commit(self, draft: Draft, verdict: Verdict) -> None:
        """Append the emitted tokens; those beyond the accepted path are pending."""
        if verdict.tokens:
            self.pending = 0
            self._append(verdict.tokens, len(verdict.tokens) - len(verdict.path))

    def fork(self) -> "TableSession":
        """An independent copy."""
        return TableSession(self._model, self.ids, self.pending)

    def _append(self, tokens: Path, pending: int) -> None:
        self.ids += tokens
        self.pending += pending


def largest(logits: Tensor, count: int) -> Rows:
    """The `count` largest of each row [r, V], with the whole row's log-sum-exp where some are left out."""
    size = logits.shape[-1]
    if count >= size:
        return Rows(logits, None, size, float("-inf"))
    top = torch.topk(logits, max(1, count), dim=-1)
    return Rows(top.values, top.indices, size, float("-inf"), torch.logsumexp(logits, dim=-1))
