"""The lean decoder as drafter: runs the frontier of growing trees, with a cache of its own that catches up lazily."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lope.core.draft import ROOT, Draft
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Step, TargetSession
from lope.core.rows import Rows
from lope.core.scores import Needs, Scores
from lope.core.verdict import Verdict
from lope.models.lean.decoder import Decoder
from lope.models.lean.layer import Segment
from lope.models.lean.layout import Layout
from lope.models.lean.session import check_fits

SLICE_ROWS = 512


class LeanDraftSession:
    """One sequence inside a draft model.

    `slots`: tree node -> the slot it ran in; `below`: (parent, token) -> node, for those that ran. ROOT has run when
    the pending items are in scratch slots.
    """

    def __init__(self, decoder: Decoder, prompt: Prompt) -> None:
        self._decoder = decoder
        self.cache = decoder.new_cache()
        self.pending: list[int] = []
        self.slots: dict[int, int] = {}
        self.below: dict[tuple[int, int], int] = {}
        self.extend(prompt)

    def extend(self, prompt: Prompt) -> None:
        """Append the words of a prompt; a language-only drafter never sees spans."""
        words = prompt.text()
        check_fits(self.cache.length + len(self.pending), len(words), self._decoder.config.context)
        self.forget_tree()
        self.pending += words

    def commit(self, draft: Draft, scores: Scores, verdict: Verdict) -> None:
        """Keep the rows of emitted tokens that this model ran itself, found by walking tokens; the rest is pending.

        The last token is pending in any case (a cut verdict may end on one that has run): the next pass starts there.
        """
        if not verdict.tokens:
            return
        kept: list[int] = []
        node = ROOT
        if ROOT in self.slots:
            kept = list(range(self.cache.length, self.cache.length + len(self.pending)))
            self.pending = []
        tokens = list(verdict.tokens)
        while len(tokens) > 1 and (node, tokens[0]) in self.below:
            node = self.below[node, tokens.pop(0)]
            kept.append(self.slots[node])
        self.cache.keep(kept)
        self.pending += tokens
        self.forget_tree()

    def fork(self) -> "LeanDraftSession":
        """An independent copy of what is committed and pending."""
        copy = object.__new__(LeanDraftSession)
        copy._decoder = self._decoder
        copy.cache = self.cache.fork()
        copy.pending = list(self.pending)
        copy.slots, copy.below = {}, {}
        return copy

    def next_slot(self) -> int:
        """The first scratch slot that holds nothing."""
        return max(self.slots.values(), default=self.cache.length - 1) + 1

    def forget_tree(self) -> None:
        """Drop the rows of a tree that was not committed."""
        self.slots, self.below = {}, {}


class LeanDraftModel:
    """A decoder that drafts. No row invariance is needed: verification tests against the very law drawn from."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder

    @property
    def needs(self) -> Needs:
        """Nothing of the target's pass."""
        return Needs()

    def open(self, prompt: Prompt, beside: TargetSession) -> LeanDraftSession:
        """A session; runs nothing."""
        return LeanDraftSession(self._decoder, prompt)

    def fork(self, session: LeanDraftSession, beside: TargetSession) -> LeanDraftSession:
        """An independent copy."""
        return session.fork()

    @torch.inference_mode()
    def step(self, steps: Sequence[Step[LeanDraftSession]]) -> list[tuple[Rows, Tensor | None]]:
        """One packed pass over all frontiers; long catch-ups run in slices before it."""
        for step in steps:
            if ROOT in step.frontier:
                self._settle(step.session)
        segments = [self._segment(step) for step in steps]
        hidden, _ = self._decoder.forward(segments)
        return drafted_rows(self._decoder, steps, frontier_rows(steps, segments, hidden))

    def _settle(self, session: LeanDraftSession) -> None:
        while len(session.pending) > SLICE_ROWS:
            ids, session.pending = tuple(session.pending[:SLICE_ROWS]), session.pending[SLICE_ROWS:]
            start = session.cache.length
            self._decoder.forward([Segment(session.cache, ids, Layout(start, len(ids)))])
            session.cache.keep(range(start, start + len(ids)))

    def _segment(self, step: Step[LeanDraftSession]) -> Segment:
        """ROOT runs the pending items as a chain; other frontier nodes hang under rows that have run."""
        session, tree = step.session, step.tree
        length = session.cache.length
        if ROOT in step.frontier:
            assert step.frontier == (ROOT,), "the root runs alone: its children are not drawn yet"
            session.forget_tree()
            session.slots[ROOT] = length + len(session.pending) - 1
            return Segment(session.cache, session.pending, Layout(length, len(session.pending)))
        slot = session.next_slot()
        for node in step.frontier:
            session.slots[node] = slot
            session.below.setdefault((tree.parents[node], tree.tokens[node]), node)
            slot += 1
        ancestors: tuple[Path, ...] = tuple(tuple(session.slots[a] for a in tree.path(node)) for node in step.frontier)
        context = length + len(session.pending)
        return Segment(session.cache, [tree.tokens[node] for node in step.frontier], Layout(context, 0, ancestors))


def drafted_rows(decoder: Decoder, steps: Sequence[Step[Any]], picked: Tensor) -> list[tuple[Rows, Tensor | None]]:
    """What a step returns: logits and hidden states after the final norm of each frontier; picked [rows, d] of all."""
    sizes, normed = [len(step.frontier) for step in steps], decoder.normed(picked)
    parts = zip(decoder.said(normed).split(sizes), normed.split(sizes), strict=True)
    return [(Rows(logits, None, decoder.config.vocab_size, float("-inf")), rows) for logits, rows in parts]


def frontier_rows(steps: Sequence[Step[Any]], segments: Sequence[Segment], x: Tensor) -> Tensor:
    """The rows of all frontiers, of the rows x [r, d] of all segments: in each segment they come last."""
    wanted: list[int] = []
    begin = 0
    for step, segment in zip(steps, segments, strict=True):
        begin += segment.layout.rows
        wanted += range(begin - len(step.frontier), begin)
    return x if len(wanted) == len(x) else x[torch.tensor(wanted, device=x.device)]
