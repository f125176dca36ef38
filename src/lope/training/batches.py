"""Sequences packed side by side into rows of one length: no place of a batch is lost to padding but a row's end."""

import random
from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lope.core.errors import UsageError
from lope.core.noise import key
from lope.training.distilled_set import Sequence


@dataclass(frozen=True, eq=False)
class Batch:
    """B rows of T places.

    tokens       int64 [B, T]
    document     int64 [B, T]      which sequence of the row a place belongs to; -1 for the row's unused end
    position     int64 [B, T]      within its sequence
    answer       bool [B, T]       the law of the NEXT token is known here
    top_ids      int64 [B, T, k]   that law's tokens ...
    top_logprobs float32 [B, T, k] ... and log-probabilities; -inf where `answer` is false
    features     float32 [B, T, L·d] or None
    """

    tokens: Tensor
    document: Tensor
    position: Tensor
    answer: Tensor
    top_ids: Tensor
    top_logprobs: Tensor
    features: Tensor | None

    def to(self, device: torch.device) -> "Batch":
        """The same on another device."""
        moved = {name: value.to(device) for name, value in vars(self).items() if value is not None}
        return replace(self, **moved)


class Batches:
    """Numbered batches: the same number is the same batch, so that an interrupted training goes on exactly.

    length: places in a row. rows: rows in a batch. features: whether batches hold the target's hidden states.
    per_epoch: about how many batches the set fills once.
    joined: the share of rows that are one long document, as a conversation of many turns is: so a drafter meets
        distances that no single sequence of the set has.
    """

    def __init__(
        self, sequences: Seq[Sequence], *, length: int, rows: int, seed: int, features: bool, joined: float = 0.0
    ) -> None:
        if not sequences:
            raise UsageError("there is nothing to learn from: no sequence is left")
        self._sequences = sequences
        self._length = length
        self._rows = rows
        self._seed = seed
        self._features = features
        self._joined = joined
        self._epoch = -1
        self._plan: list[list[int]] = []
        self._turn_to(0)
        # of the first epoch, for all: packing differs a little between epochs, and the same number is the same batch
        self.per_epoch = max(1, len(self._plan) // self._rows)

    def at(self, epoch: int, number: int) -> Batch:
        """Batch `number` of an epoch; beyond its end the epoch begins again."""
        self._turn_to(epoch)
        first = number * self._rows
        numbers = [(first + row) % len(self._plan) for row in range(self._rows)]
        rows = [[self._sequences[s] for s in self._plan[number]] for number in numbers]
        joined = [random.Random(key(self._seed, epoch, number)).random() < self._joined for number in numbers]
        return _batch(rows, joined, self._length, self._features)

    def _turn_to(self, epoch: int) -> None:
        if epoch == self._epoch:
            return
        order = list(range(len(self._sequences)))
        random.Random(key(self._seed, epoch)).shuffle(order)
        self._plan = _pack(order, [min(len(s.tokens), self._length) for s in self._sequences], self._length)
        self._epoch = epoch


def _pack(order: list[int], sizes: list[int], length: int) -> list[list[int]]:
    """First fit among the last few open rows: a long search would fill hardly better."""
    rows: list[list[int]] = []
    open_rows: list[tuple[int, list[int]]] = []
    for sequence in order:
        for place, (room, row) in enumerate(open_rows):
            if sizes[sequence] <= room:
                row.append(sequence)
                open_rows[place] = (room - sizes[sequence], row)
                break
        else:
            row = [sequence]
            rows.append(row)
            open_rows = [*open_rows[-15:], (length - sizes[sequence], row)]
    return rows


def _batch(rows: list[list[Sequence]], joined: list[bool], length: int, features: bool) -> Batch:
    count = len(rows)
    first = rows[0][0]
    kept = max(sequence.top_ids.shape[1] for row in rows for sequence in row)  # sets may keep different numbers
    tokens = torch.zeros(count, length, dtype=torch.int64)
    document = torch.full((count, length), -1, dtype=torch.int64)
    position = torch.zeros(count, length, dtype=torch.int64)
    answer = torch.zeros(count, length, dtype=torch.bool)
    top_ids = torch.zeros(count, length, kept, dtype=torch.int64)
    top_logprobs = torch.full((count, length, kept), float("-inf"))
    held = None
    if features:
        if first.features is None:
            raise UsageError("the distilled set holds no hidden states, which a feature drafter learns from")
        held = torch.zeros(count, length, first.features.shape[1])
    for r, row in enumerate(rows):
        begin = 0
        for number, sequence in enumerate(row):
            size = len(sequence.tokens)
            cut = max(0, size - length)  # of a sequence that is too long, the end is kept: that is where the answer is
            end = begin + size - cut
            tokens[r, begin:end] = sequence.tokens[cut:]
            document[r, begin:end] = 0 if joined[r] else number
            position[r, begin:end] = torch.arange(begin, end) if joined[r] else torch.arange(size - cut)
            # the law of answer token a stands at the place before it
            skipped = max(0, cut - (sequence.prompt - 1))
            law = begin + sequence.prompt - 1 + skipped - cut
            answer[r, law : end - 1] = True
            own = sequence.top_ids.shape[1]
            top_ids[r, law : end - 1, :own] = sequence.top_ids[skipped:]
            top_logprobs[r, law : end - 1, :own] = sequence.top_logprobs[skipped:].float()
            if held is not None and sequence.features is not None:
                held[r, begin:end] = sequence.features[cut:].float()
            begin = end
    return Batch(tokens, document, position, answer, top_ids, top_logprobs, held)
