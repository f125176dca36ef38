"""What was measured: one row per prompt and system, and what follows from it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Counts = tuple[int, ...]


@dataclass(frozen=True)
class Turn:
    """One answer of one system.

    steps:  (tokens, seconds) of the prompt's pass and of every one after it; the seconds add up to the whole answer.
    passes: target passes after the prompt's own; None where the system does not tell.
    drafted, accepted: tokens that were drafted, and emitted because of it; None where the system does not tell.
    offered_at, accepted_at: per draft position, passes in which a token could be accepted there, and was.
    """

    prompt_tokens: int
    tokens: Counts
    steps: tuple[tuple[int, float], ...]
    passes: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    offered_at: Counts = ()
    accepted_at: Counts = ()

    def __post_init__(self) -> None:
        # to the microsecond, so that what is computed now is what is computed from the file
        object.__setattr__(self, "steps", tuple((count, round(seconds, 6)) for count, seconds in self.steps))

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Turn":
        """Read what `to_json` wrote. Raises ValueError for what it cannot have written."""
        steps = tuple((_count(count, 1), _seconds(seconds)) for count, seconds in row["steps"])
        tokens = _counts(row["tokens"])
        if not steps or sum(count for count, _ in steps) != len(tokens):
            raise ValueError(f"steps of other tokens than the {len(tokens)} there are")
        return cls(
            prompt_tokens=_count(row["prompt_tokens"]),
            tokens=tokens,
            steps=steps,
            passes=_known(row["passes"]),
            drafted=_known(row["drafted"]),
            accepted=_known(row["accepted"]),
            offered_at=_counts(row["offered_at"]),
            accepted_at=_counts(row["accepted_at"]),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "tokens": list(self.tokens),
            "steps": [list(step) for step in self.steps],
            "passes": self.passes,
            "drafted": self.drafted,
            "accepted": self.accepted,
            "offered_at": list(self.offered_at),
            "accepted_at": list(self.accepted_at),
        }


@dataclass(frozen=True)
class Row:
    """One prompt answered by one system, all turns of it. position: its place in the rotation for this prompt."""

    id: str
    category: str
    group: str
    system: str
    turns: tuple[Turn, ...]
    peak_memory_bytes: int | None = None
    position: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """There is at most one row of each."""
        return self.id, self.system

    @property
    def tokens(self) -> Counts:
        """Everything that was emitted, turn after turn."""
        return tuple(token for turn in self.turns for token in turn.tokens)

    @property
    def seconds(self) -> float:
        """All of it, the prompts included."""
        return sum(seconds for turn in self.turns for _, seconds in turn.steps)

    @property
    def time_to_first_token(self) -> float:
        """Seconds until the first turn's first token."""
        return self.turns[0].steps[0][1]

    @property
    def decode_tokens(self) -> int:
        """Tokens that came after the prompts' own passes."""
        return sum(count for turn in self.turns for count, _ in turn.steps[1:])

    @property
    def decode_seconds(self) -> float:
        """Seconds after the prompts' own passes."""
        return sum(seconds for turn in self.turns for _, seconds in turn.steps[1:])

    @property
    def rate(self) -> float | None:
        """Tokens per second, prompt excluded; None where the prompt's pass was all there was."""
        return self.decode_tokens / self.decode_seconds if self.decode_tokens and self.decode_seconds > 0 else None

    @property
    def rate_with_prompt(self) -> float | None:
        """Tokens per second, prompt included."""
        return len(self.tokens) / self.seconds if self.seconds > 0 else None

    @property
    def passes(self) -> int | None:
        """Target passes after the prompts' own."""
        return _total([turn.passes for turn in self.turns])

    @property
    def drafted(self) -> int | None:
        """Tokens that were drafted."""
        return _total([turn.drafted for turn in self.turns])

    @property
    def accepted(self) -> int | None:
        """Drafted tokens that were emitted."""
        return _total([turn.accepted for turn in self.turns])

    @property
    def tokens_per_pass(self) -> float | None:
        """Tokens after the prompts' passes over passes after them."""
        return None if self.passes is None else self.decode_tokens / self.passes if self.passes else 1.0

    def time_per_token(self, percentile: float) -> float | None:
        """Seconds a token took after the prompt: its step's, shared by all tokens of the step."""
        times = [s / count for turn in self.turns for count, s in turn.steps[1:] for _ in range(count)]
        return float(np.percentile(times, percentile)) if times else None

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Row":
        """Read what `to_json` wrote; figures are computed anew. Raises ValueError for what it cannot have written."""
        if not row["turns"]:
            raise ValueError("a row without turns")
        return cls(
            id=str(row["id"]),
            category=str(row["category"]),
            group=str(row["group"]),
            system=str(row["system"]),
            turns=tuple(Turn.from_json(turn) for turn in row["turns"]),
            peak_memory_bytes=_known(row["peak_memory_bytes"]),
            position=_count(row["position"]),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data: what was measured, and for readers without lope the figures that follow from it."""
        figures = {
            "num_tokens": len(self.tokens),
            "passes": self.passes,
            "tokens_per_pass": self.tokens_per_pass,
            "seconds": self.seconds,
            "decode_seconds": self.decode_seconds,
            "tokens_per_second": self.rate,
            "tokens_per_second_with_prompt": self.rate_with_prompt,
            "time_to_first_token": self.time_to_first_token,
            "time_per_token_p50": self.time_per_token(50),
            "time_per_token_p95": self.time_per_token(95),
            "drafted": self.drafted,
            "accepted": self.accepted,
        }
        return {
            "id": self.id,
            "category": self.category,
            "group": self.group,
            "system": self.system,
            "position": self.position,
            "peak_memory_bytes": self.peak_memory_bytes,
            "figures": figures,
            "turns": [turn.to_json() for turn in self.turns],
        }


def _count(value: object, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{value!r} is no number of at least {least}")
    return value


def _counts(values: object) -> Counts:
    if not isinstance(values, list):
        raise ValueError(f"{values!r} is no list of numbers")
    return tuple(map(_count, values))


def _known(value: object) -> int | None:
    return None if value is None else _count(value)


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
        raise ValueError(f"{value!r} are no seconds")
    return float(value)


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
