"""What one sequence holds inside a feature drafter: rows in the cache, and what the target has said since.

Items are numbered as in the target's context. Row i pairs the target's hidden states at item i with the token of item
i + 1 and stands at position i; a draft hangs under the row whose token is the last item.
"""

from dataclasses import replace

import torch
from torch import Tensor

from lope.core.draft import Draft
from lope.core.prompt import Path, Prompt, Span
from lope.core.scores import Scores
from lope.core.verdict import Verdict
from lope.models.lean.cache import SequenceCache


class FeatureDraftSession:
    """One sequence.

    layers:   the hidden states of the target that it collects.
    cache:    rows that have run, all of them on the target's own hidden states; behind them the scratch of a draft.
    tokens, features: the rows that can run now: m tokens, and m rows of hidden states [*, L·d] in parts.
    unseen:   ids of the items at which the target's hidden states are not known yet; the last item is among them.
    pictures: spans whose items are embeddings.
    slots:    tree node -> the slot it ran in; ROOT is among them once the rows above lie in scratch slots.
    states:   [nodes run, d], the layer's own output at ROOT and below, in the order of their slots.
    """

    def __init__(self, layers: Path, cache: SequenceCache, prompt: Prompt) -> None:
        self.layers = layers
        self.cache = cache
        self.tokens: list[int] = []
        self.features: list[Tensor] = []
        self.unseen: list[int] = []
        self.pictures: list[Span] = []
        self.slots: dict[int, int] = {}
        self.states: Tensor | None = None
        self.extend(prompt)

    @property
    def length(self) -> int:
        """Context items."""
        return self.cache.length + len(self.tokens) + len(self.unseen)

    @property
    def ready(self) -> bool:
        """Whether a draft can hang under the last item: the target has run all items before it, and at least one."""
        return len(self.unseen) == 1 and self.length > 1

    def extend(self, prompt: Prompt) -> None:
        """Append items that the target is yet to run."""
        self.forget_tree()
        shift = self.length
        self.pictures += [replace(span, start=span.start + shift, stop=span.stop + shift) for span in prompt.spans]
        self.unseen += prompt.ids

    def commit(self, draft: Draft, scores: Scores, verdict: Verdict) -> None:
        """Take the target's hidden states at the items that it ran, and along the accepted path.

        Rows of drafted nodes are dropped: they were computed from the layer's own output in place of hidden states.
        """
        if not verdict.tokens:
            return
        if self.slots:
            self.cache.keep(range(self.cache.length, self.cache.length + len(self.tokens)))
            self.tokens, self.features = [], []
        self._skip(len(self.unseen) - scores.context)
        rows = [*range(scores.context), *(scores.context + node for node in verdict.path)]
        hidden = [scores.features[layer] for layer in self.layers]
        index = torch.tensor(rows, device=hidden[0].device)
        self.features.append(torch.cat([states[index] for states in hidden], dim=-1))
        items = [*self.unseen, *verdict.tokens]
        self.tokens += items[1 : len(rows) + 1]
        self.unseen = items[len(rows) :]
        self.forget_tree()

    def fork(self) -> "FeatureDraftSession":
        """An independent copy of what is committed and pending."""
        copy = FeatureDraftSession(self.layers, self.cache.fork(), Prompt(()))
        copy.tokens, copy.features = list(self.tokens), list(self.features)
        copy.unseen, copy.pictures = list(self.unseen), list(self.pictures)
        return copy

    def forget_tree(self) -> None:
        """Drop the rows of a tree that was not committed."""
        self.slots, self.states = {}, None

    def _skip(self, count: int) -> None:
        """Leave out the first items: a session opened beside a target that had run them is never told of them.

        The layer sees its other rows at the same distances from each other, which is all that rotary positions say.
        """
        assert count == 0 or (count > 0 and self.length == len(self.unseen)), "a target runs what the drafter is told"
        del self.unseen[:count]
        self.pictures = [replace(span, start=span.start - count, stop=span.stop - count) for span in self.pictures]
