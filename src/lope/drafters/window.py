"""A draft model whose context may be shorter than the text: it reads a window that moves in steps, from position 0."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from torch import Tensor

from lope.core.draft import Draft
from lope.core.prompt import Path, Prompt
from lope.core.protocols import DraftModel, DraftSession, Step
from lope.core.rows import Rows
from lope.core.scores import Needs, Scores
from lope.core.verdict import Verdict

N = TypeVar("N", bound=DraftSession)
BesideT = TypeVar("BesideT", contravariant=True)


class WindowSession(Generic[N]):
    """The words so far, where the window starts, and the model's session over it (None: to be opened at need)."""

    def __init__(self, context: int, beside: Any) -> None:
        self._context = context
        self.beside = beside
        self.words: list[int] = []
        self.start = 0
        self.inner: N | None = None

    def extend(self, prompt: Prompt) -> None:
        """Append words; a text model does not see pictures (Gagrani et al. 2024, arXiv:2404.08856)."""
        words = prompt.text()
        self._append(words)
        if self.inner is not None:
            self.inner.extend(Prompt(words))

    def commit(self, draft: Draft, scores: Scores, verdict: Verdict) -> None:
        """Append what was emitted."""
        self._append(verdict.tokens)
        if self.inner is not None:
            self.inner.commit(draft, scores, verdict)

    def _append(self, words: Path) -> None:
        self.words.extend(words)
        start = window_start(len(self.words), self._context)
        if start != self.start:
            self.start, self.inner = start, None


def window_start(length: int, context: int) -> int:
    """The first of `length` words that is read: a function of the length alone, so that re-opening changes nothing.

    A quarter of the context is left to the draft; the window moves by a quarter at a time, so that it is read anew
    once every context / 4 tokens and holds between half and three quarters of the context.
    """
    block = draft_room(context)
    return -(-max(0, length - (context - block)) // block) * block


def draft_room(context: int) -> int:
    """How many nodes a draft may have."""
    return context // 4


@dataclass(frozen=True, eq=False)
class WindowedDraftModel(Generic[N, BesideT]):
    """`model`, given the last words that fit its `context` (at least 4 items), and never a picture."""

    model: DraftModel[N, BesideT]
    context: int

    @property
    def needs(self) -> Needs:
        """The model's."""
        return self.model.needs

    def open(self, prompt: Prompt, beside: BesideT) -> WindowSession[N]:
        """A session; the model's own is opened by the first step."""
        session = WindowSession[N](self.context, beside)
        session.extend(prompt)
        return session

    def fork(self, session: WindowSession[N], beside: BesideT) -> WindowSession[N]:
        """An independent copy."""
        copy = WindowSession[N](self.context, beside)
        copy.words, copy.start = list(session.words), session.start
        copy.inner = None if session.inner is None else self.model.fork(session.inner, beside)
        return copy

    def step(self, steps: Sequence[Step[WindowSession[N]]]) -> list[tuple[Rows, Tensor | None]]:
        """One packed pass of the model, over the windows."""
        return self.model.step([Step(self._inner(step.session), step.tree, step.frontier) for step in steps])

    def _inner(self, session: WindowSession[N]) -> N:
        if session.inner is None:
            session.inner = self.model.open(Prompt(tuple(session.words[session.start :])), session.beside)
        return session.inner
