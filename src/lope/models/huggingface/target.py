"""A transformers model as target: packed passes over pending items and draft trees."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lope.core.draft import Draft
from lope.core.errors import UsageError
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Job
from lope.core.rows import Rows
from lope.core.scores import Needs, Scores
from lope.core.verdict import Verdict
from lope.models.huggingface.packed_model import Outcome, PackedModel, Segment
from lope.models.huggingface.sequence_cache import SequenceCache
from lope.models.lean.layout import Layout
from lope.models.lean.session import Pending, Ran, check_fits, check_ids
from lope.models.lean.target import held, tree_rows

# longer prompts run in slices of their own, so that a pass needs no mask of thousands of rows
SLICE_ROWS = 512


class HuggingFaceTargetSession:
    """One sequence inside a transformers model."""

    def __init__(self, model: PackedModel, prompt: Prompt) -> None:
        self._model = model
        self.cache = SequenceCache()
        self.pending = Pending()
        self.ran = Ran()
        self.extend(prompt)

    @property
    def length(self) -> int:
        """Context items: committed rows and pending ones."""
        return self.cache.length + len(self.pending.ids)

    @property
    def room(self) -> int:
        """How many more items the context can take."""
        return self._model.context - self.length

    def extend(self, prompt: Prompt) -> None:
        """Append items; they are pending. Raises UsageError where they do not fit or are not tokens."""
        check_ids(prompt.ids, self._model.vocab_size)
        check_fits(self.length, len(prompt.ids), self._model.context)
        self.pending.append(prompt)

    def commit(self, draft: Draft, verdict: Verdict) -> None:
        """Keep the rows of the accepted path; what was emitted beyond it is pending."""
        if not verdict.tokens:
            return
        root = self.length - 1
        rows = tree_rows(draft)
        path = [root + 1 + rows[draft.firsts[node]] for node in verdict.path]
        self.cache.keep([*range(self.cache.length, root + 1), *path])
        self.pending = Pending(list(verdict.tokens[len(path) :]))
        self.ran = Ran()

    def fork(self) -> "HuggingFaceTargetSession":
        """An independent copy."""
        fork = HuggingFaceTargetSession(self._model, Prompt(()))
        fork.cache = self.cache.fork()
        fork.pending = Pending(list(self.pending.ids), list(self.pending.spans))
        features = {layer: list(slices) for layer, slices in self.ran.features.items()}
        fork.ran = Ran(self.ran.items, features, list(self.ran.context_logits))
        return fork


class HuggingFaceTarget:
    """A transformers model that scores draft trees."""

    def __init__(self, model: PackedModel) -> None:
        self._model = model

    def open(self, prompt: Prompt) -> HuggingFaceTargetSession:
        """A session; runs nothing."""
        return HuggingFaceTargetSession(self._model, prompt)

    @torch.inference_mode()
    def score(self, jobs: Sequence[Job[HuggingFaceTargetSession]]) -> list[Scores]:
        """Settle long prompts slice by slice, then run the rest and all nodes of all jobs in one packed pass."""
        for job in jobs:
            self._check(job.needs)
            self._settle(job.session, job.needs)
        segments = [self._segment(job) for job in jobs]
        outcomes = self._model.run(segments, hidden=any(job.needs.layers for job in jobs))
        return [self._scores(*each) for each in zip(jobs, segments, outcomes, strict=True)]

    def _check(self, needs: Needs) -> None:
        wrong = [layer for layer in needs.layers if not 0 <= layer <= self._model.num_layers]
        if wrong:
            raise UsageError(f"the model has no hidden state {wrong[0]}: they are 0 to {self._model.num_layers}")

    def _settle(self, session: HuggingFaceTargetSession, needs: Needs) -> None:
        pending, ran = session.pending, session.ran
        while len(pending.ids) > (1 if pending.spans else SLICE_ROWS):
            count = pending.even(min(SLICE_ROWS, len(pending.ids) - 1))
            ids, embeddings = pending.take(count)
            start = session.cache.length
            wanted = range(count if needs.context_logits else 0)
            segment = Segment(session.cache, ids, Layout(start, count), tuple(wanted), embeddings)
            (outcome,) = self._model.run([segment], hidden=bool(needs.layers))
            session.cache.keep(range(start, start + count))
            ran.items += count
            for layer in needs.layers:
                ran.features.setdefault(layer, []).append(outcome.hidden[layer])
            if needs.context_logits:
                ran.context_logits.append(_largest(outcome.logits, needs.context_logits))

    def _segment(self, job: Job[HuggingFaceTargetSession]) -> Segment:
        """Pending items as a chain, tree nodes under the last; wanted: context rows if needed, the root, all nodes."""
        session, draft = job.session, job.draft
        chain, base = len(session.pending.ids), session.length
        ids, embeddings = session.pending.first(chain)
        rows = tree_rows(draft)
        ancestors: tuple[Path, ...] = tuple(tuple(base + rows[step] for step in draft.path(node)) for node in rows)
        wanted = (chain - 1, *(chain + rows[draft.firsts[node]] for node in range(len(draft))))
        if job.needs.context_logits:
            wanted = (*range(chain - 1), *wanted)
        tokens = (*ids, *(draft.tokens[node] for node in rows))
        return Segment(session.cache, tokens, Layout(session.cache.length, chain, ancestors), wanted, embeddings)

    def _scores(self, job: Job[HuggingFaceTargetSession], segment: Segment, outcome: Outcome) -> Scores:
        ran, needs, chain = job.session.ran, job.needs, segment.layout.chain
        before = len(segment.wanted) - len(job.draft) - 1
        context_logits = None
        if needs.context_logits and ran.items + chain > 1:
            parts = [*ran.context_logits, _largest(outcome.logits[:before], needs.context_logits)]
            values, ids = (torch.cat(side) for side in zip(*parts, strict=True))
            context_logits = Rows(values, ids, self._model.vocab_size, float("-inf"))
        rows = [*range(chain - 1), *segment.wanted[before:]]
        features = ran.gathered({layer: outcome.hidden[layer][rows] for layer in needs.layers})
        return Scores(held(outcome.logits[before:].float(), needs.logits), ran.items + chain, features, context_logits)


def _largest(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """float32 values and ids [r, k] of the largest of each row [r, V]."""
    top = torch.topk(logits, min(count, logits.shape[-1]), dim=-1)
    return top.values.float(), top.indices
