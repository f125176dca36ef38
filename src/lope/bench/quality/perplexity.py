"""Perplexity of texts with a sliding window, every token but a text's first counted exactly once."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lope.bench.json_lines import is_json_lines, rows_of, text_of
from lope.core import checks
from lope.core.draft import chain
from lope.core.errors import SettingError, UsageError
from lope.core.prompt import Path as Ids
from lope.core.prompt import Prompt
from lope.core.protocols import Job
from lope.core.scores import ALL, Needs
from lope.core.verdict import Verdict
from lope.engine.engine import Engine

_FORM = '{"text": "..."}'


def read_texts(path: Path) -> list[str]:
    """The texts of a file: one, or with `.jsonl` (.gz) the field `text` of each row. Raises UsageError."""
    if not is_json_lines(path):
        return [text_of(path)]
    texts = []
    for where, row in rows_of(path, _FORM):
        if not isinstance(row.get("text"), str):
            raise UsageError(f"{where}: has no text (a row is {_FORM})")
        texts.append(row["text"])
    return texts


@dataclass(frozen=True)
class PerplexityResult:
    """nats: the sum of -log P over `tokens` tokens of `texts` texts of `num_bytes` bytes of UTF-8."""

    nats: float
    tokens: int
    texts: int
    num_bytes: int

    @property
    def perplexity(self) -> float:
        """exp of the mean over all tokens."""
        return math.exp(self.nats / self.tokens)

    @property
    def bits_per_byte(self) -> float:
        """What does not depend on how a tokenizer cuts the text."""
        return self.nats / math.log(2.0) / self.num_bytes

    def document(self) -> dict[str, Any]:
        """For JSON."""
        counted = {"nats": self.nats, "tokens": self.tokens, "texts": self.texts, "bytes": self.num_bytes}
        return {"perplexity": self.perplexity, "bits_per_byte": self.bits_per_byte, **counted}


@dataclass(frozen=True)
class Perplexity:
    """The window moves by `stride`; of each window only tokens that no earlier one predicted count.

    A token is predicted from the window's tokens before it: `window - stride` at least, save at a text's beginning.
    The text runs through the target as drafts that are always accepted, `rows` rows a pass: what is measured are the
    passes that verify drafts, with their cache, not a forward made for measuring.

    window: tokens, None: the model's context, 1024 at most. max_tokens: of each text, None: all.
    """

    window: int | None = None
    stride: int = 512
    max_tokens: int | None = None
    rows: int = 32

    def __post_init__(self) -> None:
        checks.at_least("stride", self.stride, 1)
        checks.at_least("rows", self.rows, 1)
        if self.window is not None:
            checks.at_least("window", self.window, 2)
        if self.max_tokens is not None:
            checks.at_least("max_tokens", self.max_tokens, 2)

    def measure(
        self, engine: Engine, texts: Sequence[str], advance: Callable[[], None] = lambda: None
    ) -> PerplexityResult:
        """The figures of all texts together; texts of fewer than two tokens are left out. Raises UsageError."""
        context = engine.model.backend.context
        window = min(context, 1024) if self.window is None else self.window
        if window > context:
            raise SettingError(f"the window of {window} tokens is longer than the model's context of {context}")
        nats, tokens, counted, num_bytes = 0.0, 0, 0, 0
        for text in texts:
            ids = engine.model.tokenizer.encode(text, add_special=True)[: self.max_tokens]
            if len(ids) > 1:
                nats += self._text(engine, ids, window)
                tokens += len(ids) - 1
                counted += 1
                num_bytes += len(engine.model.tokenizer.decode(ids[1:]).encode())
            advance()
        if not tokens:
            raise UsageError("perplexity needs a text of two tokens or more")
        return PerplexityResult(nats, tokens, counted, num_bytes)

    def _text(self, engine: Engine, ids: Ids, window: int) -> float:
        """Windows begin at multiples of the stride, as in the guide of transformers."""
        nats, scored, start = 0.0, 1, 0
        step = min(self.stride, window - 1)
        while scored < len(ids):
            end = min(start + window, len(ids))
            nats += self._span(engine, ids[start:end], scored - start)
            scored, start = end, start + step
        return nats

    def _span(self, engine: Engine, ids: Ids, first: int) -> float:
        """Sum of -log P(ids[i] | ids[:i]) for i from `first` on."""
        session = engine.target.open(Prompt(ids[:first]))
        nats = 0.0
        while first < len(ids):
            chunk = ids[first : first + self.rows]
            draft = chain(chunk[:-1])
            [scores] = engine.target.score([Job(session, draft, Needs(logits=ALL))])
            logits = scores.logits.values.double()
            right = logits.gather(1, logits.new_tensor(chunk).long()[:, None])[:, 0]
            nats += float((logits.logsumexp(dim=-1) - right).sum())
            session.commit(draft, Verdict(tuple(range(len(draft))), chunk))
            first += len(chunk)
        return nats
