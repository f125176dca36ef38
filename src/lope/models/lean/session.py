"""What one sequence holds while it is decoded: cache, pending items, and what has run since the last commit."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from lope.core.errors import UsageError
from lope.core.prompt import Path, Prompt, Span


@dataclass
class Pending:
    """Items that are context but have not run: ids, and the spans of embeddings among them (relative to the first)."""

    ids: list[int] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def append(self, prompt: Prompt) -> None:
        """Add a prompt's items."""
        shift = len(self.ids)
        self.ids += prompt.ids
        self.spans += [replace(span, start=span.start + shift, stop=span.stop + shift) for span in prompt.spans]

    def take(self, count: int) -> tuple[Path, Tensor | None]:
        """Remove and return the first `count` items."""
        ids, embeddings = self.first(count)
        self.ids = self.ids[count:]
        self.spans = [replace(s, start=s.start - count, stop=s.stop - count) for s in self.spans if s.stop > count]
        return ids, embeddings

    def first(self, count: int) -> tuple[Path, Tensor | None]:
        """The first `count` items, and their embeddings if a span covers them all. A slice never mixes the two."""
        assert count <= self.even(count), "a slice of pending items holds words or one span"
        inside = [span for span in self.spans if span.start < count]
        if not inside:
            return tuple(self.ids[:count]), None
        skipped = -inside[0].start
        return tuple(self.ids[:count]), inside[0].embeddings[skipped : skipped + count]

    def even(self, count: int) -> int:
        """The longest slice of at most `count` items that is all words or all one span."""
        for span in sorted(self.spans, key=lambda span: span.start):
            if span.start <= 0 < span.stop:
                return min(count, span.stop)
            if span.start > 0:
                return min(count, span.start)
        return min(count, len(self.ids))


def check_fits(length: int, added: int, context: int) -> None:
    """Refuse a prompt that the context cannot hold, before anything is allocated."""
    if length + added > context:
        already = f" after {length} items of context" if length else ""
        raise UsageError(f"the prompt has {added} tokens{already}, but the model's context holds {context}")


def check_ids(ids: Path, vocab_size: int) -> None:
    """Refuse ids that are not tokens of the model."""
    if ids and not 0 <= min(ids) <= max(ids) < vocab_size:
        bad = next(token for token in ids if not 0 <= token < vocab_size)
        raise UsageError(f"token {bad} is not in the model's vocabulary of {vocab_size}")


@dataclass
class Ran:
    """What has run since the last commit and lies in the cache: counts, features and context logits by slice."""

    items: int = 0
    features: dict[int, list[Tensor]] = field(default_factory=dict)
    context_logits: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    def gathered(self, fresh: dict[int, Tensor]) -> dict[int, Tensor]:
        """Features of all items since the last commit, then of `fresh`."""
        assert not self.items or fresh.keys() <= self.features.keys(), "a pass needs no layers that its slices did not"
        return {layer: torch.cat([*self.features.get(layer, []), rows]) for layer, rows in fresh.items()}
