"""A transformers model as drafter: runs the frontier of growing trees; a cache of its own catches up lazily."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lope.core.draft import ROOT, Draft
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Step, TargetSession
from lope.core.rows import Rows
from lope.core.scores import Needs, Scores
from lope.core.verdict import Verdict
from lope.models.huggingface.packed_model import PackedModel, Segment
from lope.models.huggingface.sequence_cache import SequenceCache
from lope.models.huggingface.target import SLICE_ROWS
from lope.models.lean.layout import Layout
from lope.models.lean.session import check_fits


class HuggingFaceDraftSession:
    """One sequence inside a draft model.

    slots: tree node -> the cache row it ran in; below: (parent, token) -> node, for those that ran. ROOT has run when
        the pending items are in scratch rows.
    """

    def __init__(self, model: PackedModel, prompt: Prompt) -> None:
        self._model = model
        self.cache = SequenceCache()
        self.pending: list[int] = []
        self.slots: dict[int, int] = {}
        self.below: dict[tuple[int, int], int] = {}
        self.extend(prompt)

    @property
    def root(self) -> int:
        """The row of the last context item."""
        return self.cache.length + len(self.pending) - 1

    def extend(self, prompt: Prompt) -> None:
        """Append the words of a prompt; a language-only drafter never sees spans."""
        words = prompt.text()
        check_fits(self.root + 1, len(words), self._model.context)
        self.forget()
        self.pending += words

    def commit(self, draft: Draft, scores: Scores, verdict: Verdict) -> None:
        """Keep the rows of emitted tokens that this model ran itself, found by walking tokens; the rest is pending.

        The last one always is, even if it has run (a verdict that was cut): the next tree needs a root to hang under.
        """
        if not verdict.tokens:
            return
        kept: list[int] = []
        emitted = list(verdict.tokens)
        if ROOT in self.slots:
            kept, self.pending = list(range(self.cache.length, self.root + 1)), []
        node = ROOT
        while len(emitted) > 1 and (node, emitted[0]) in self.below:
            node = self.below[node, emitted.pop(0)]
            kept.append(self.slots[node])
        self.cache.keep(kept)
        self.pending += emitted
        self.forget()

    def fork(self) -> "HuggingFaceDraftSession":
        """An independent copy of what is committed and pending."""
        fork = HuggingFaceDraftSession(self._model, Prompt(tuple(self.pending)))
        fork.cache = self.cache.fork()
        return fork

    def forget(self) -> None:
        """Scratch rows hold nothing any more."""
        self.slots, self.below = {}, {}


class HuggingFaceDraftModel:
    """A transformers model that drafts."""

    def __init__(self, model: PackedModel) -> None:
        self._model = model

    @property
    def needs(self) -> Needs:
        """Nothing of the target's pass."""
        return Needs()

    def open(self, prompt: Prompt, beside: TargetSession) -> HuggingFaceDraftSession:
        """A session; runs nothing."""
        return HuggingFaceDraftSession(self._model, prompt)

    def fork(self, session: HuggingFaceDraftSession, beside: TargetSession) -> HuggingFaceDraftSession:
        """An independent copy."""
        return session.fork()

    @torch.inference_mode()
    def step(self, steps: Sequence[Step[HuggingFaceDraftSession]]) -> list[tuple[Rows, Tensor | None]]:
        """One packed pass over all frontiers; long catch-ups run in slices before it."""
        segments = [self._root(step) if ROOT in step.frontier else self._frontier(step) for step in steps]
        size = self._model.vocab_size
        return [
            (Rows(outcome.logits.float(), None, size, float("-inf")), outcome.hidden[-1][list(segment.wanted)])
            for segment, outcome in zip(segments, self._model.run(segments, hidden=True), strict=True)
        ]

    def _root(self, step: Step[HuggingFaceDraftSession]) -> Segment:
        """The pending items as a chain; whatever was drafted and not committed is forgotten."""
        assert step.frontier == (ROOT,), "the root runs alone: its children are not drawn yet"
        session = step.session
        session.forget()
        while len(session.pending) > SLICE_ROWS:
            ids, session.pending = session.pending[:SLICE_ROWS], session.pending[SLICE_ROWS:]
            start = session.cache.length
            self._model.run([Segment(session.cache, ids, Layout(start, len(ids)), ())])
            session.cache.keep(range(start, start + len(ids)))
        chain = len(session.pending)
        session.slots[ROOT] = session.root
        return Segment(session.cache, session.pending, Layout(session.cache.length, chain), (chain - 1,))

    def _frontier(self, step: Step[HuggingFaceDraftSession]) -> Segment:
        """Nodes under rows that have run, appended to the scratch rows."""
        session, tree = step.session, step.tree
        for slot, node in enumerate(step.frontier, start=max(session.slots.values()) + 1):
            session.slots[node] = slot
            session.below.setdefault((tree.parents[node], tree.tokens[node]), node)
        ancestors: tuple[Path, ...] = tuple(tuple(session.slots[a] for a in tree.path(node)) for node in step.frontier)
        tokens = [tree.tokens[node] for node in step.frontier]
        layout = Layout(session.root + 1, 0, ancestors)
        return Segment(session.cache, tokens, layout, tuple(range(len(tokens))))
