"""The lean decoder as target: packed passes over pending items and draft trees."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lope.core.draft import Draft
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Job
from lope.core.rows import Rows
from lope.core.scores import ALL, Needs, Scores
from lope.core.verdict import Verdict
from lope.models.lean.decoder import Decoder
from lope.models.lean.layer import Segment
from lope.models.lean.layout import Layout
from lope.models.lean.session import Pending, Ran, check_fits, check_ids

# a prompt longer than this is run in slices of its own before the pass that scores the draft: then that pass has the
# same shape with and without speculation
_CHAIN_ROWS = 8
_SLICE_ROWS = 512


class LeanTargetSession:
    """One sequence inside the lean target."""

    def __init__(self, decoder: Decoder, prompt: Prompt) -> None:
        self._decoder = decoder
        self.cache = decoder.new_cache()
        self.pending = Pending()
        self.ran = Ran()
        self.scored = 0  # how many of the pending items lie in scratch slots, run by the last pass
        self.extend(prompt)

    @property
    def length(self) -> int:
        """Context items: committed rows and pending ones."""
        return self.cache.length + len(self.pending.ids)

    @property
    def room(self) -> int:
        """How many more items the context can take."""
        return self._decoder.config.context - self.length

    def extend(self, prompt: Prompt) -> None:
        """Append items; they are pending. Raises UsageError where they do not fit or are not tokens."""
        check_ids(prompt.ids, self._decoder.config.vocab_size)
        check_fits(self.length, len(prompt.ids), self._decoder.config.context)
        self.pending.append(prompt)

    def commit(self, draft: Draft, verdict: Verdict) -> None:
        """Keep the rows of the accepted path; what was emitted beyond it is pending.

        Where no pass has run since the last commit (or `extend`, or `fork`), tokens only join the pending ones.
        """
        if not verdict.tokens:
            return
        chain = len(self.pending.ids)
        if self.scored != chain:
            assert not verdict.path, "nodes are accepted from the pass that has run them"
            self.pending.append(Prompt(verdict.tokens))
            return
        rows = tree_rows(draft)
        first = self.cache.length
        kept = [*range(first, first + chain), *(first + chain + rows[draft.firsts[node]] for node in verdict.path)]
        self.cache.keep(kept)
        self.pending = Pending(list(verdict.tokens[len(verdict.path) :]))
        self.ran = Ran()
        self.scored = 0

    def fork(self) -> "LeanTargetSession":
        """An independent copy."""
        copy = object.__new__(LeanTargetSession)
        copy._decoder = self._decoder
        copy.cache = self.cache.fork()
        copy.pending = Pending(list(self.pending.ids), list(self.pending.spans))
        copy.scored = 0
        copy.ran = Ran(
            self.ran.items, {k: list(v) for k, v in self.ran.features.items()}, list(self.ran.context_logits)
        )
        return copy


def tree_rows(draft: Draft) -> dict[int, int]:
    """Which row of the tree each node that is no copy takes."""
    return {node: row for row, node in enumerate(node for node in range(len(draft)) if draft.firsts[node] == node)}


@dataclass(frozen=True, eq=False)
class _Planned:
    """One job's rows in a pass."""

    job: Job[LeanTargetSession]
    segment: Segment
    rows: Path  # for the root and each node, its row within the segment


class LeanTarget:
    """A decoder that scores draft trees; `exact` decoders give every token the same bits in any pass."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder

    def open(self, prompt: Prompt) -> LeanTargetSession:
        """A session; runs nothing."""
        return LeanTargetSession(self._decoder, prompt)

    @torch.inference_mode()
    def score(self, jobs: Sequence[Job[LeanTargetSession]]) -> list[Scores]:
        """Settle long prompts slice by slice, then run the rest and all nodes of all jobs in one packed pass."""
        for job in jobs:
            self._settle(job.session, job.needs)
        planned = [self._plan(job) for job in jobs]
        layers = sorted({layer for job in jobs for layer in job.needs.layers})
        hidden, features = self._decoder.forward([plan.segment for plan in planned], layers)
        begins = []
        begin = 0
        for plan in planned:
            plan.job.session.scored = plan.segment.layout.chain
            begins.append(begin)
            begin += plan.segment.layout.rows
        wanted = [first + row for plan, first in zip(planned, begins, strict=True) for row in plan.rows]
        logits = self._decoder.logits(hidden[torch.tensor(wanted, device=hidden.device)])
        sizes = [len(plan.rows) for plan in planned]
        return [
            self._scores(plan, part, hidden, {k: v for k, v in features.items() if k in plan.job.needs.layers}, first)
            for plan, part, first in zip(planned, logits.split(sizes), begins, strict=True)
        ]

    def _settle(self, session: LeanTargetSession, needs: Needs) -> None:
        while len(session.pending.ids) > (1 if session.pending.spans else _CHAIN_ROWS):
            count = session.pending.even(min(_SLICE_ROWS, len(session.pending.ids) - 1))
            ids, embeddings = session.pending.take(count)
            segment = Segment(session.cache, ids, Layout(session.cache.length, count), embeddings)
            hidden, features = self._decoder.forward([segment], needs.layers)
            session.cache.keep(range(session.cache.length, session.cache.length + count))
            session.ran.items += count
            for layer, rows in features.items():
                session.ran.features.setdefault(layer, []).append(rows)
            if needs.context_logits:
                session.ran.context_logits.append(self._largest(hidden, needs.context_logits))

    def _plan(self, job: Job[LeanTargetSession]) -> _Planned:
        session, draft = job.session, job.draft
        chain = len(session.pending.ids)
        ids, embeddings = session.pending.first(chain)
        rows = tree_rows(draft)
        base = session.cache.length + chain
        ancestors = tuple(tuple(base + rows[step] for step in draft.path(node)) for node in rows)
        layout = Layout(session.cache.length, chain, ancestors)
        if embeddings is not None:
            tree = self._decoder.embed([draft.tokens[node] for node in rows])
            embeddings = torch.cat([embeddings.to(tree.dtype), tree])
        segment = Segment(session.cache, (*ids, *(draft.tokens[node] for node in rows)), layout, embeddings)
        root_and_nodes = (chain - 1, *(chain + rows[draft.firsts[node]] for node in range(len(draft))))
        return _Planned(job, segment, root_and_nodes)

    def _scores(
        self, plan: _Planned, logits: Tensor, hidden: Tensor, features: Mapping[int, Tensor], begin: int
    ) -> Scores:
        session, needs = plan.job.session, plan.job.needs
        chain = plan.segment.layout.chain
        rows = [begin + row for row in (*range(chain - 1), *plan.rows)]
        fresh = {layer: values[rows] for layer, values in features.items()}
        context_logits = None
        if needs.context_logits:
            parts = list(session.ran.context_logits)
            if chain > 1:
                parts.append(self._largest(hidden[begin : begin + chain - 1], needs.context_logits))
            if parts:
                values, ids = (torch.cat(side) for side in zip(*parts, strict=True))
                context_logits = Rows(values, ids, self._decoder.config.vocab_size, float("-inf"))
        return Scores(
            held(logits, needs.logits), session.ran.items + chain, session.ran.gathered(fresh), context_logits
        )

    def _largest(self, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
        count = min(count, self._decoder.config.vocab_size)
        parts = [torch.topk(self._decoder.logits(rows), count, dim=-1) for rows in hidden.split(64)]
        return torch.cat([part.values for part in parts]), torch.cat([part.indices for part in parts])


def held(logits: Tensor, count: int) -> Rows:
    """The `count` largest of each row [r, V], or all."""
    size = logits.shape[-1]
    if count >= size or count == ALL:
        return Rows(logits, None, size, float("-inf"))
    if count <= 1:
        best = logits.max(dim=-1, keepdim=True)
        return Rows(best.values, best.indices, size, float("-inf"))
    top = torch.topk(logits, count, dim=-1)
    return Rows(top.values, top.indices, size, float("-inf"), torch.logsumexp(logits, dim=-1))
