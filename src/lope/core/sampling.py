"""The one pipeline from logits to the law that tokens are drawn from, with each tree path's own history."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lope.core import checks
from lope.core.bias import AllowedTokens, LogitBias, MinNewTokens
from lope.core.errors import NoTokenLeftError, SettingError
from lope.core.filters import candidates, min_p, top_k
from lope.core.penalties import CountPenalty, RepetitionPenalty
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Processor, Track
from lope.core.rows import Rows
from lope.core.scores import ALL, Needs

# colder than this, logits divided by it leave float32
_COLDEST = 1e-6


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen; names and meanings are those of Hugging Face `generate` where one exists.

    temperature 0 is greedy. frequency_penalty and presence_penalty are OpenAI's: over generated tokens only.
    Order: logit_bias, allowed_tokens, min_new_tokens, repetition_penalty, count penalties, processors; temperature,
    top-k, top-p, min-p.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    allowed_tokens: tuple[int, ...] | None = None
    min_new_tokens: int = 0
    processors: tuple[Processor, ...] = ()

    def __post_init__(self) -> None:
        checks.between("temperature", self.temperature, 0.0, 100.0)
        if 0.0 < self.temperature < _COLDEST:
            raise SettingError(f"temperature must be 0 (greedy) or at least {_COLDEST:g}, not {self.temperature}")
        if self.top_k is not None:
            checks.at_least("top_k", self.top_k, 1)
        if self.top_p is not None:
            checks.between("top_p", self.top_p, 0.0, 1.0)
        if self.min_p is not None:
            checks.between("min_p", self.min_p, 0.0, 1.0)
        checks.above("repetition_penalty", self.repetition_penalty, 0.0)
        checks.between("frequency_penalty", self.frequency_penalty, -100.0, 100.0)
        checks.between("presence_penalty", self.presence_penalty, -100.0, 100.0)
        checks.at_least("min_new_tokens", self.min_new_tokens, 0)
        for token, bias in self.logit_bias.items():
            checks.at_least("a token in logit_bias", token, 0)
            if bias != bias or bias == float("inf"):
                raise SettingError(f"logit_bias of token {token} must be a number or -inf, not {bias}")
        if self.allowed_tokens is not None:
            if not self.allowed_tokens:
                raise SettingError("allowed_tokens must name at least one token")
            checks.at_least("a token in allowed_tokens", min(self.allowed_tokens), 0)

    def chain(self, stop_tokens: frozenset[int]) -> tuple[Processor, ...]:
        """The processors that change logits before temperature, in order; nothing that changes nothing."""
        parts: list[Processor] = []
        if self.logit_bias:
            parts.append(LogitBias(dict(self.logit_bias)))
        if self.allowed_tokens is not None:
            parts.append(AllowedTokens(self.allowed_tokens))
        if self.min_new_tokens and stop_tokens:
            parts.append(MinNewTokens(self.min_new_tokens, tuple(sorted(stop_tokens))))
        if self.repetition_penalty != 1.0:
            parts.append(RepetitionPenalty(self.repetition_penalty))
        if self.frequency_penalty or self.presence_penalty:
            parts.append(CountPenalty(self.frequency_penalty, self.presence_penalty))
        return (*parts, *self.processors)

    def begin(self, prompt: Prompt, stop_tokens: frozenset[int] = frozenset()) -> "PipelineSampler":
        """A sampler whose root is the end of the prompt."""
        tracks = tuple(part.begin(prompt) for part in self.chain(stop_tokens))
        return PipelineSampler(self, tracks, len(prompt.ids))


class PipelineSampler:
    """The pipeline at one root. Tracks along tree paths are made when a row is asked for and forgotten at commit."""

    def __init__(self, settings: Sampling, tracks: tuple[Track, ...], length: int) -> None:
        self._settings = settings
        self._length = length
        self._along: dict[Path, tuple[Track, ...]] = {(): tracks}

    @property
    def greedy(self) -> bool:
        """True at temperature 0."""
        return self._settings.temperature == 0.0

    @property
    def needs(self) -> Needs:
        """One logit a row where the best one decides, else all."""
        return Needs(logits=1 if self.greedy and not self._along[()] else ALL)

    @property
    def length(self) -> int:
        """How many context items have been committed."""
        return self._length

    def processed(self, logits: Rows, paths: Sequence[Path]) -> Rows:
        """Logits after every processor, float32 or wider."""
        if not self._along[()]:
            return logits
        rows = [self._apply(logits, row, path) for row, path in enumerate(paths)]
        return Rows(torch.stack(rows), logits.ids, logits.size, logits.rest)

    def filtered(self, logits: Rows, paths: Sequence[Path]) -> Rows:
        """Probabilities of the next token of each row."""
        rows = self.processed(logits, paths)
        if self.greedy:
            return _best(rows)
        settings = self._settings
        values = rows.values / settings.temperature
        ids = rows.ids
        if settings.top_k is not None and settings.top_k < values.shape[-1]:
            values, ids = _narrowed(values, ids, *top_k(values, settings.top_k))
        if settings.top_p is not None and settings.top_p < 1.0:
            values, ids = _narrowed(values, ids, *candidates(values, settings.top_p))
        if settings.min_p:
            values = values.masked_fill(~min_p(values, settings.min_p), float("-inf"))
        probability = torch.softmax(values, dim=-1)
        # float32 sums over a large vocabulary are off by more than 1e-6: say exactly what is drawn from
        return Rows(probability / probability.sum(dim=-1, keepdim=True), ids, rows.size, 0.0)

    def commit(self, tokens: Path) -> None:
        """Move the root by the committed tokens."""
        self._along = {(): self._tracks(tokens)}
        self._length += len(tokens)

    def fork(self) -> "PipelineSampler":
        """A copy at the same root; tracks are immutable and shared."""
        return PipelineSampler(self._settings, self._along[()], self._length)

    def _tracks(self, path: Path) -> tuple[Track, ...]:
        if path not in self._along:
            above = self._tracks(path[:-1])
            self._along[path] = tuple(track.advance(path[-1]) for track in above)
        return self._along[path]

    def _apply(self, logits: Rows, row: int, path: Path) -> Tensor:
        values = logits.values[row]
        ids = None if logits.ids is None else logits.held(row)
        shape = values.shape
        for track in self._tracks(path):
            values = track.apply(values, ids)
            if values.shape != shape:
                name = type(track).__name__
                raise SettingError(f"a processor ({name}) made {tuple(values.shape)} logits of {tuple(shape)}")
        best = float(values.amax())
        if best == float("-inf"):
            raise NoTokenLeftError("the masks and penalties leave no token to choose from")
        if not math.isfinite(best):
            raise SettingError(f"a processor made a logit {best}: it must be a number, or -inf to forbid a token")
        return values


def _narrowed(values: Tensor, ids: Tensor | None, columns: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Only these columns [r, m] of values [r, C], -inf where not kept, and their token ids [r, m]."""
    tokens = columns if ids is None else ids.expand_as(values).gather(-1, columns)
    return values.gather(-1, columns).masked_fill(~kept, float("-inf")), tokens


def _best(rows: Rows) -> Rows:
    column = rows.values.argmax(dim=-1, keepdim=True)
    ids = column if rows.ids is None else rows.ids.expand_as(rows.values).gather(-1, column)
    return Rows(torch.ones_like(column, dtype=rows.values.dtype), ids, rows.size, 0.0)
