"""The layer of EAGLE-3 (Li et al. 2025, arXiv:2503.01840): it drafts from hidden states of the target.

The target's hidden states at some layers are joined to one, h. The layer reads the next token's embedding beside it:

    x = h + attention([norm(embedding); norm(h)]);  x = x + mlp(norm(x));  logits = head(norm(x))

Below the root of a draft the target has said nothing yet: there the layer's own x stands for h.

d hidden size, L layers that are read, r rows of the pass.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from lope.core.draft import ROOT
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Step, TargetSession
from lope.core.rows import Rows
from lope.core.scores import Needs
from lope.models.lean.decoder import Decoder
from lope.models.lean.draft_model import SLICE_ROWS, drafted_rows, frontier_rows
from lope.models.lean.drafter_weights import FeatureWeights
from lope.models.lean.feature_session import FeatureDraftSession
from lope.models.lean.layer import Segment
from lope.models.lean.layout import Layout


class FeatureDraftModel:
    """A draft model whose sessions can be stepped once they are `ready`: after the target's first pass."""

    def __init__(self, weights: FeatureWeights) -> None:
        self._weights = weights
        self._decoder = Decoder(weights.decoder, invariant=False)

    @property
    def needs(self) -> Needs:
        """Hidden states of the target."""
        return Needs(layers=self._weights.layers)

    def open(self, prompt: Prompt, beside: TargetSession) -> FeatureDraftSession:
        """A session; runs nothing."""
        return FeatureDraftSession(self._weights.layers, self._decoder.new_cache(), prompt)

    def fork(self, session: FeatureDraftSession, beside: TargetSession) -> FeatureDraftSession:
        """An independent copy."""
        return session.fork()

    @torch.inference_mode()
    def step(self, steps: Sequence[Step[FeatureDraftSession]]) -> list[tuple[Rows, Tensor | None]]:
        """One packed pass over all frontiers; long catch-ups run in slices before it."""
        for step in steps:
            if ROOT in step.frontier:
                self._settle(step.session)
        hidden = self._hidden(steps)
        segments = [self._segment(step) for step in steps]
        picked = frontier_rows(steps, segments, self._run(segments, hidden))
        sizes = [len(step.frontier) for step in steps]
        for step, states in zip(steps, picked.split(sizes), strict=True):
            above = step.session.states
            step.session.states = states if above is None else torch.cat([above, states])
        return drafted_rows(self._decoder, steps, picked)

    def _run(self, segments: Sequence[Segment], hidden: Tensor) -> Tensor:
        """The layer's output [r, d] of all rows, which read `hidden` [r, d] beside their tokens."""
        layers, config = self._weights.decoder.layers, self._decoder.config
        norm, eps = self._weights.decoder.kernels.norm, config.norm_eps
        embedded, rows = self._decoder.enter(segments)
        read = [norm(embedded, self._weights.token_norm, eps), norm(hidden, layers[0].attention_norm, eps)]
        return rows.through(0, layers, hidden, torch.cat(read, dim=-1))

    def _hidden(self, steps: Sequence[Step[FeatureDraftSession]]) -> Tensor:
        """h [r, d] of all rows: the target's for rows that catch up, the layer's own below the root."""
        pending = [step.session for step in steps if ROOT in step.frontier]
        joined = iter(())
        if pending:
            fresh = torch.cat([part for session in pending for part in session.features])
            joined = iter(self._weights.join(fresh).split([len(session.tokens) for session in pending]))
        parts = [next(joined) if ROOT in step.frontier else _above(step) for step in steps]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _settle(self, session: FeatureDraftSession) -> None:
        while len(session.tokens) > SLICE_ROWS:
            features = torch.cat(session.features)
            segment = self._chain(session, SLICE_ROWS)
            self._run([segment], self._weights.join(features[:SLICE_ROWS]))
            session.cache.keep(segment.layout.slots)
            session.tokens, session.features = session.tokens[SLICE_ROWS:], [features[SLICE_ROWS:]]

    def _segment(self, step: Step[FeatureDraftSession]) -> Segment:
        """ROOT runs the pending rows as a chain; other frontier nodes hang under rows that have run."""
        session, tree = step.session, step.tree
        context = session.cache.length + len(session.tokens)
        if ROOT in step.frontier:
            assert step.frontier == (ROOT,), "the root runs alone: its children are not drawn yet"
            assert session.ready, "a draft hangs under an item that the target is about to run"
            session.forget_tree()
            session.slots[ROOT] = context - 1
            return self._chain(session, len(session.tokens))
        for slot, node in enumerate(step.frontier, start=max(session.slots.values()) + 1):
            session.slots[node] = slot
        ancestors: tuple[Path, ...] = tuple(tuple(session.slots[a] for a in tree.path(node)) for node in step.frontier)
        return Segment(session.cache, [tree.tokens[node] for node in step.frontier], Layout(context, 0, ancestors))

    def _chain(self, session: FeatureDraftSession, count: int) -> Segment:
        """The first `count` pending rows; row i reads item i + 1, which may be part of a picture."""
        start = session.cache.length
        tokens, first, last = session.tokens[:count], start + 1, start + 1 + count
        embeddings = None
        for span in session.pictures:
            low, high = max(span.start, first), min(span.stop, last)
            if low < high:
                embeddings = self._decoder.embed(tokens) if embeddings is None else embeddings
                embeddings[low - first : high - first] = span.embeddings[low - span.start : high - span.start]
        return Segment(session.cache, tokens, Layout(start, count), embeddings)


def _above(step: Step[FeatureDraftSession]) -> Tensor:
    """The layer's output at the parents of the frontier [nodes, d]."""
    session = step.session
    assert session.states is not None, "a frontier is run after what it hangs under"
    rows = [session.slots[step.tree.parents[node]] - session.slots[ROOT] for node in step.frontier]
    return session.states[torch.tensor(rows, device=session.states.device)]
