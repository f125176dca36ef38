"""Finished conversations on their way to disk: by shards, uninterrupted, with as many log-probabilities as it takes."""

from dataclasses import replace

import torch
from torch import Tensor

from lope.core import checks
from lope.engine.interrupt import Uninterrupted
from lope.training.distilled_set import DistilledSet
from lope.training.outside_mass import OutsideMass
from lope.training.shard import Sequence


class ShardWriter:
    """Collects sequences and appends a shard whenever `shard_tokens` have come together (a kill loses no more).

    Where the set leaves open how many log-probabilities to keep, that is chosen when the first shard is written, by all
    answer tokens noted until then.
    """

    def __init__(self, place: DistilledSet, shard_tokens: int) -> None:
        asked, vocab_size = place.manifest.top_k, place.manifest.vocab_size
        if asked:
            checks.between("top_k", asked, 1, vocab_size)
        self._place = place
        self._shard_tokens = shard_tokens
        self._outside = OutsideMass((asked,)) if asked else OutsideMass.choosing(vocab_size)
        self._held: list[Sequence] = []

    @property
    def columns(self) -> int:
        """How many log-probabilities of each answer token are wanted."""
        return self._outside.sizes[-1]

    @property
    def outside(self) -> float:
        """Mean probability that is not kept, of the answer tokens noted in this run."""
        return self._outside.mean(self._place.manifest.top_k or self.columns)

    def note(self, logprobs: Tensor) -> None:
        """Measure answer tokens [r, columns], whether or not their conversation will be kept."""
        if len(logprobs):
            self._outside.note(logprobs)

    def add(self, sequence: Sequence) -> None:
        """A finished conversation, with `columns` log-probabilities. Raises RunError where the disk is full."""
        self._held.append(sequence)
        if sum(len(held.tokens) for held in self._held) >= self._shard_tokens:
            self.flush()

    def flush(self) -> None:
        """Write what is held; Ctrl-C waits for it. Raises RunError where the disk is full."""
        with Uninterrupted():
            held, self._held = self._held, []
            if not held:
                return
            if not self._place.manifest.top_k:
                chosen = self._outside.choice()
                self._place.keep_top(chosen, self._outside.mean(chosen), self._outside.count)
            kept = self._place.manifest.top_k
            self._place.append([_narrowed(sequence, kept) for sequence in held])


def with_last(features: Tensor) -> Tensor:
    """[n, w] from the n - 1 rows that were run: the last token stands there with its neighbour's row."""
    return torch.cat([features, features[-1:]])


def _narrowed(sequence: Sequence, kept: int) -> Sequence:
    return replace(sequence, top_ids=sequence.top_ids[:, :kept], top_logprobs=sequence.top_logprobs[:, :kept])
