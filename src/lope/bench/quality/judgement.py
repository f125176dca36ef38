"""One configuration judged on everything, and set beside the reference."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from lope.bench.quality.answers import Given, Question, agreement, answer, as_raw
from lope.bench.quality.perplexity import Perplexity, PerplexityResult
from lope.bench.quality.retrieval import Cell, Hidden, Retrieval
from lope.core.errors import UsageError
from lope.engine.engine import Engine

RETRIEVAL_TOKENS = 16


@dataclass(frozen=True)
class Judgement:
    """What a configuration scored. given: its answers, retrieval first. Whatever was not asked for is None or empty."""

    name: str
    perplexity: PerplexityResult | None
    cells: tuple[Cell, ...]
    tasks: tuple[Given, ...]
    given: tuple[Given, ...] = field(repr=False)

    @property
    def retrieval(self) -> float | None:
        """The share of hidden sentences that were found."""
        count = sum(cell.count for cell in self.cells)
        return sum(cell.found for cell in self.cells) / count if count else None

    @property
    def accuracy(self) -> float | None:
        """The share of tasks answered rightly."""
        return sum(given.right for given in self.tasks) / len(self.tasks) if self.tasks else None

    def agrees(self, reference: "Judgement") -> float | None:
        """The share of answers with the reference's tokens. None without answers, or if it was asked other things."""
        if len(self.given) != len(reference.given):
            return None
        return agreement(self.given, reference.given)

    def document(self, reference: "Judgement") -> dict[str, Any]:
        """For JSON."""
        ratio = None
        if self.perplexity and reference.perplexity:
            ratio = self.perplexity.perplexity / reference.perplexity.perplexity
        return {
            "perplexity": None if self.perplexity is None else {**self.perplexity.document(), "ratio": ratio},
            "retrieval": None
            if not self.cells
            else {"accuracy": self.retrieval, "cells": [vars(cell) for cell in self.cells]},
            "tasks": None
            if not self.tasks
            else {
                "accuracy": self.accuracy,
                "right": sum(given.right for given in self.tasks),
                "count": len(self.tasks),
                "answers": [{"text": given.text, "right": given.right} for given in self.tasks],
            },
            "agreement": self.agrees(reference),
        }


@dataclass(frozen=True)
class Judge:
    """What every configuration is asked. raw: prompts without a chat template."""

    texts: Sequence[str] = ()
    perplexity: Perplexity = field(default_factory=Perplexity)
    retrieval: Retrieval | None = None
    tasks: Sequence[Question] = ()
    max_new_tokens: int = 64
    raw: bool = False

    def __post_init__(self) -> None:
        if not (self.texts or self.retrieval or self.tasks):
            raise UsageError("nothing to judge by: give --text FILE, --retrieval passkey or --tasks FILE")

    @property
    def steps(self) -> int:
        """How often `advance` is called for one configuration."""
        retrieval = self.retrieval
        prompts = 0
        if retrieval is not None:
            prompts = len(retrieval.kinds) * len(retrieval.lengths) * len(retrieval.depths) * retrieval.repeats
        return len(self.texts) + prompts + len(self.tasks)

    def judge(self, name: str, engine: Engine, advance: Callable[[], None] = lambda: None) -> Judgement:
        """Ask one configuration everything. Raises LopeError where something does not fit its model."""
        raw = as_raw(engine, self.raw)
        hidden = self.retrieval.prompts(engine, raw, RETRIEVAL_TOKENS) if self.retrieval else []
        measured = self.perplexity.measure(engine, self.texts, advance) if self.texts else None
        asked = [each.question for each in hidden]
        found = answer(engine, asked, max_new_tokens=RETRIEVAL_TOKENS, raw=raw, advance=advance)
        tasks = answer(engine, self.tasks, max_new_tokens=self.max_new_tokens, raw=raw, advance=advance)
        return Judgement(name, measured, _cells(hidden, found), tuple(tasks), (*found, *tasks))


def _cells(hidden: Sequence[Hidden], given: Sequence[Given]) -> tuple[Cell, ...]:
    pairs = zip(hidden, given, strict=True)
    cells = []
    for (kind, length, depth), group in groupby(pairs, key=lambda pair: (pair[0].kind, pair[0].length, pair[0].depth)):
        members = list(group)
        tokens = max(each.tokens for each, _ in members)
        found = sum(answered.right for _, answered in members)
        cells.append(Cell(kind, length, depth, tokens, found, len(members)))
    return tuple(cells)
