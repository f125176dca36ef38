"""Runs one packed pass of a transformers model: many sequences with trees, in one batch row, without padding."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import Tensor

from lope.core.prompt import Path
from lope.models.huggingface.attention_mask import packed_mask
from lope.models.huggingface.sequence_cache import SequenceCache
from lope.models.lean.layout import Layout


@dataclass(frozen=True, eq=False)
class Segment:
    """The rows of one sequence in a pass.

    tokens:     one id for each row of the layout.
    wanted:     the rows whose logits are wanted.
    embeddings: [chain, d] for the layout's chain instead of its tokens' own, or None.
    """

    cache: SequenceCache
    tokens: Sequence[int]
    layout: Layout
    wanted: Path
    embeddings: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a pass says of one sequence.

    logits: [len(wanted), vocabulary], in the model's dtype.
    hidden: [rows, d] each of transformers' `hidden_states`, the last one after the final norm; () unless asked for.
    """

    logits: Tensor
    hidden: tuple[Tensor, ...]


class PackedModel:
    """A transformers model with the numbers that sessions ask for. context: how many items a sequence can hold."""

    def __init__(self, model: Any, context: int) -> None:
        self.model = model
        self.context = context
        self.vocab_size: int = model.get_output_embeddings().weight.shape[0]
        config = model.config.get_text_config(decoder=True)
        self.num_layers: int = config.num_hidden_layers
        self.hidden_size: int = config.hidden_size
        self.dtype: torch.dtype = model.dtype
        self.device: torch.device = model.device
        # transformers 5.24 renamed the argument, and warns where the old name is used
        self._cache_argument = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"

    @torch.inference_mode()
    def run(self, segments: Sequence[Segment], *, hidden: bool = False) -> list[Outcome]:
        """Run all rows of all segments; their keys and values lie in scratch rows of their caches afterwards."""
        layouts = [segment.layout for segment in segments]
        cache = self._joined(segments)
        begins = [sum(layout.rows for layout in layouts[:number]) for number in range(len(layouts))]
        wanted = [begin + row for segment, begin in zip(segments, begins, strict=True) for row in segment.wanted]
        lengths = [int(length) for layout in layouts for length in layout.lengths]
        output = self.model(
            **self._items(segments),
            **{self._cache_argument: cache},
            attention_mask=packed_mask(layouts, self.dtype, self.device),
            position_ids=torch.tensor([lengths], device=self.device) - 1,
            logits_to_keep=torch.tensor(wanted, dtype=torch.int64, device=self.device),
            use_cache=True,
            output_hidden_states=hidden,
            return_dict=True,
        )
        self._share_out(cache, segments)
        logits = output.logits[0].split([len(segment.wanted) for segment in segments])
        states = [state[0].split([layout.rows for layout in layouts]) for state in output.hidden_states or ()]
        return [Outcome(rows, tuple(state[number] for state in states)) for number, rows in enumerate(logits)]

    def _items(self, segments: Sequence[Segment]) -> dict[str, Tensor]:
        """Token ids [1, r], or embeddings [1, r, d] where some items are no tokens."""
        tokens = torch.tensor([[token for segment in segments for token in segment.tokens]], device=self.device)
        if all(segment.embeddings is None for segment in segments):
            return {"input_ids": tokens}
        embedded = self.model.get_input_embeddings()(tokens).clone()
        begin = 0
        for segment in segments:
            if segment.embeddings is not None:
                embedded[0, begin : begin + segment.layout.chain] = segment.embeddings.to(embedded)
            begin += segment.layout.rows
        return {"inputs_embeds": embedded}

    def _joined(self, segments: Sequence[Segment]) -> Any:
        """A transformers cache of all sequences' rows before this pass, one sequence after another."""
        cache = transformers.DynamicCache(config=self.model.config)
        past = [(segment.cache, segment.layout.slots[0]) for segment in segments if segment.layout.slots[0] > 0]
        for number in range(self.num_layers if past else 0):
            pairs = [[part[:, :, :rows] for part in own.layers[number]] for own, rows in past]
            keys, values = (torch.cat(parts, dim=2) for parts in zip(*pairs, strict=True))
            cache.update(keys, values, number)
        return cache

    def _share_out(self, cache: Any, segments: Sequence[Segment]) -> None:
        """Give each sequence its rows back, the ones of this pass last."""
        layers = [(layer.keys, layer.values) for layer in cache.layers]
        old, new = 0, sum(segment.layout.slots[0] for segment in segments)
        for segment in segments:
            past, rows = segment.layout.slots[0], segment.layout.rows
            spans = ((old, past), (new, rows))
            segment.cache.layers = [(_rows(keys, spans), _rows(values, spans)) for keys, values in layers]
            old, new = old + past, new + rows


def _rows(part: Tensor, spans: Sequence[tuple[int, int]]) -> Tensor:
    """The rows of some (begin, count) spans of [1, heads, rows, width]; `part` itself where that is all of it."""
    if sum(count for _, count in spans) == part.shape[2]:
        return part
    return torch.cat([part.narrow(2, begin, count) for begin, count in spans], dim=2)
