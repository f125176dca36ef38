"""The forward pass of the Llama family (Touvron et al. 2023), packed over the rows of many sequences.

d hidden size, r rows of the pass.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from lope.models.lean.cache import SequenceCache
from lope.models.lean.kernels import RowsPass
from lope.models.lean.layer import Segment
from lope.models.lean.weights import Weights


class Decoder:
    """Runs packed passes. `invariant`: a row's bits depend on its path alone."""

    def __init__(self, weights: Weights, *, invariant: bool) -> None:
        self._weights = weights
        self.config = weights.config
        self._invariant = invariant
        self._layers, self._head = weights.layers, weights.head
        if invariant:
            self._layers, self._head = weights.kernels.invariant(weights.layers, weights.head)

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self._weights.device

    def new_cache(self) -> SequenceCache:
        """An empty cache for one sequence."""
        return SequenceCache(self.config, self._weights.dtype, self._weights.device)

    def forward(self, segments: Sequence[Segment], layers: Sequence[int] = ()) -> tuple[Tensor, dict[int, Tensor]]:
        """Run all rows of all segments: (last hidden states [r, d] before the final norm, features by layer)."""
        x, rows = self.enter(segments)
        features: dict[int, Tensor] = {}
        begin, whole = 0, len(self._layers)
        for end in sorted({*layers, whole}):
            if end > begin:
                x = rows.through(begin, self._layers[begin:end], x)
            if end in layers:
                features[end] = x if end < whole else self.normed(x)
            begin = end
        return x, features

    def enter(self, segments: Sequence[Segment]) -> tuple[Tensor, RowsPass]:
        """(what the rows of all segments look like before the first layer [r, d], their pass through the layers)."""
        for segment in segments:
            segment.cache.reserve(segment.layout.used)
        x = self.embed([token for segment in segments for token in segment.tokens])
        begin = 0
        for segment in segments:
            if segment.embeddings is not None:
                x[begin : begin + segment.layout.rows] = segment.embeddings
            begin += segment.layout.rows
        weights = self._weights
        return x, weights.kernels.begin(self.config, segments, weights.rotary, invariant=self._invariant)

    def embed(self, tokens: Sequence[int]) -> Tensor:
        """Token embeddings [r, d]."""
        return self._weights.embedding(torch.tensor(tokens, dtype=torch.int64, device=self.device))

    def logits(self, hidden: Tensor) -> Tensor:
        """float32 [r, vocabulary] from last hidden states [r, d]."""
        return self.said(self.normed(hidden))

    def said(self, normed: Tensor) -> Tensor:
        """float32 [r, vocabulary] from hidden states after the final norm [r, d]."""
        return self._head(normed).float()

    def normed(self, hidden: Tensor) -> Tensor:
        """Last hidden states after the final norm [r, d]."""
        return self._weights.kernels.norm(hidden, self._weights.norm, self.config.norm_eps)
