"""What a caller gets: pieces while the answer streams, then the answer with its figures."""

from dataclasses import dataclass, field
from enum import StrEnum

from lope.core.prompt import Path


class FinishReason(StrEnum):
    """Why an answer ended."""

    STOP = "stop"
    LENGTH = "length"
    STOP_STRING = "stop_string"


@dataclass(frozen=True)
class Piece:
    """What one pass added. `text` never ends in half a character; it may be empty while one is unfinished.

    drafted:  for each token whether a drafter proposed it (the others came from the target alone).
    logprobs: for each token its log-probability under the target's unprocessed logits, if they were asked for.
    """

    text: str
    tokens: Path
    drafted: tuple[bool, ...]
    logprobs: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Stats:
    """What one answer cost. Seconds are wall-clock; in a batch, those of the whole batch until this answer ended.

    passes:           target passes after the prompt's own.
    prompt_emitted:   tokens that the prompt's own pass emitted.
    drafted:          nodes that drafters proposed; accepted: how many of them were emitted.
    offered_at, accepted_at: per depth, rounds in which a node of that depth could be accepted, and was.
    """

    prompt_tokens: int = 0
    num_tokens: int = 0
    passes: int = 0
    prompt_emitted: int = 0
    drafted: int = 0
    accepted: int = 0
    offered_at: Path = ()
    accepted_at: Path = ()
    seconds: float = 0.0
    time_to_first_token: float = 0.0
    seconds_proposing: float = 0.0
    seconds_scoring: float = 0.0
    token_times: tuple[float, ...] = field(default=(), repr=False)

    @property
    def tokens_per_pass(self) -> float:
        """Block efficiency τ: tokens after the prompt's pass / passes after it; exactly 1.0 for plain decoding."""
        return (self.num_tokens - self.prompt_emitted) / self.passes if self.passes else 1.0

    @property
    def tokens_per_second(self) -> float:
        """All tokens over all seconds, the prompt's included."""
        return self.num_tokens / self.seconds if self.seconds else 0.0

    @property
    def decode_tokens_per_second(self) -> float:
        """Tokens after the prompt's pass over the seconds after it."""
        left = self.seconds - self.time_to_first_token
        return (self.num_tokens - self.prompt_emitted) / left if left > 0 else 0.0

    @property
    def acceptance(self) -> tuple[float, ...]:
        """By position: P(position k accepted | position k − 1 accepted and position k drafted)."""
        return tuple(a / o if o else 0.0 for a, o in zip(self.accepted_at, self.offered_at, strict=True))


@dataclass(frozen=True)
class Answer:
    """One finished answer. `tokens` holds every emitted id, the stop token included; `text` leaves it out.

    verifier: the rule that was used, by name (what `auto` took). drafted, logprobs: as in Piece, for all tokens.
    draft_error: what the drafter failed with, where the answer was allowed to go on without it.
    """

    text: str
    tokens: Path
    finish_reason: FinishReason
    stats: Stats
    seed: int
    verifier: str
    drafted: tuple[bool, ...] = ()
    logprobs: tuple[float, ...] | None = None
    draft_error: str | None = None
