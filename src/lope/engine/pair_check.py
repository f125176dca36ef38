"""Is this target with this drafter lossless here? Bits of rows in other passes, answers, near-ties."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lope.core.draft import EMPTY, Draft, Draw, chain
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Job
from lope.core.scores import ALL, Needs
from lope.core.verdict import Verdict
from lope.engine.engine import Engine

PROMPTS = (
    "Why is the sky blue?",
    "Write a Python function that reverses a list, and explain it line by line.",
    "List the numbers from one to thirty in words.",
    "Summarise the story of Little Red Riding Hood in five sentences.",
)
_WIDE = 16


@dataclass(frozen=True)
class RowInvariance:
    """Logits of the same token from passes of one row and of sixteen: how many rows were equal to the bit."""

    positions: int
    bit_identical: int
    flips: int
    max_difference: float


@dataclass(frozen=True)
class Difference:
    """Where an answer leaves the plain one. A near-tie is numerics: each pass picks its own token, and the gap between
    them is below twice what the passes differ by at that position. Anything else is a bug."""

    prompt: str
    position: int
    plain_token: int
    token: int
    gap: float
    pass_difference: float
    near_tie: bool


@dataclass(frozen=True)
class PairReport:
    """What `lope check --model` found."""

    rows: RowInvariance
    prompts: int
    greedy_equal: int
    coupled_equal: int
    tokens_per_pass: float
    differences: tuple[Difference, ...]

    @property
    def passed(self) -> bool:
        """No difference but near-ties."""
        return all(difference.near_tie for difference in self.differences)


def check_pair(plain: Engine, engine: Engine, *, tokens: int, seed: int) -> PairReport:
    """Compare an engine with the same target decoding plainly, greedily and with shared noise, on built-in prompts."""
    differences: list[Difference] = []
    equal = {0.0: 0, 0.8: 0}
    measured: list[RowInvariance] = []
    passes = emitted = 0
    for prompt in PROMPTS:
        ids = plain.ids(prompt) if plain.model.template else plain.ids(prompt, raw=True)
        for temperature in equal:
            settings: dict[str, Any] = {"max_new_tokens": tokens, "temperature": temperature, "seed": seed}
            expected = plain.generate(Prompt(ids), **settings)
            judged = engine if temperature == 0.0 else engine.with_verifier("coupled")
            answer = judged.generate(Prompt(ids), **settings)
            equal[temperature] += expected.tokens == answer.tokens
            if temperature == 0.0:
                passes += answer.stats.passes
                emitted += answer.stats.num_tokens - answer.stats.prompt_emitted
                measured.append(_row_invariance(plain, ids, expected.tokens))
                if expected.tokens != answer.tokens:
                    differences.append(_difference(plain, prompt, ids, expected.tokens, answer.tokens))
    rows = RowInvariance(
        sum(m.positions for m in measured),
        sum(m.bit_identical for m in measured),
        sum(m.flips for m in measured),
        max(m.max_difference for m in measured),
    )
    tau = emitted / passes if passes else 1.0
    return PairReport(rows, len(PROMPTS), equal[0.0], equal[0.8], tau, tuple(differences))


def _row_invariance(engine: Engine, prompt: Path, tokens: Path) -> RowInvariance:
    narrow = _logits(engine, prompt, tokens, wide=1)
    wide = _logits(engine, prompt, tokens, wide=_WIDE)
    same = (narrow == wide).all(dim=-1)
    flips = int((narrow.argmax(dim=-1) != wide.argmax(dim=-1)).sum())
    return RowInvariance(len(narrow), int(same.sum()), flips, float((narrow - wide).abs().max()))


def _logits(engine: Engine, prompt: Path, tokens: Path, *, wide: int) -> Tensor:
    """[len(tokens), V]: the logits that each token was chosen by, from passes of `wide` rows along the same text."""
    session = engine.target.open(Prompt(prompt))
    rows: list[Tensor] = []
    done = 0
    while done < len(tokens):
        path = tokens[done : done + wide - 1]
        draft = _padded(path, wide - 1) if wide > 1 else EMPTY
        scores = engine.target.score([Job(session, draft, Needs(logits=ALL))])[0]
        taken = min(len(path) + 1, len(tokens) - done)
        rows.append(scores.logits.values[:taken].clone())
        session.commit(draft, Verdict(tuple(range(taken - 1)), tokens[done : done + taken]))
        done += taken
    return torch.cat(rows)


def _padded(path: Path, nodes: int) -> Draft:
    """The path as a chain, filled up with other children of the root, so that a pass is wide to the end."""
    others = [token for token in range(nodes + 1) if token not in path[:1]][: nodes - len(path)]
    line = chain(path)
    count = len(path) + len(others)
    return Draft(
        path + tuple(others),
        line.parents + (-1,) * len(others),
        (Draw.POINT,) * count,
        (0,) * count,
        None,
        (-1,) * (count + 1),
    )


def _difference(engine: Engine, prompt: str, ids: Path, plain: Sequence[int], other: Sequence[int]) -> Difference:
    at = next((i for i, (a, b) in enumerate(zip(plain, other, strict=False)) if a != b), min(len(plain), len(other)))
    if at >= min(len(plain), len(other)):
        return Difference(prompt, at, -1, -1, float("inf"), 0.0, near_tie=False)
    shared = (*plain[:at], plain[at])
    narrow = _logits(engine, ids, shared, wide=1)[at]
    wide = _logits(engine, ids, shared, wide=_WIDE)[at]
    own = int(narrow.argmax()) == plain[at] and int(wide.argmax()) == other[at]
    gap = max(float(narrow[plain[at]] - narrow[other[at]]), float(wide[other[at]] - wide[plain[at]]))
    moved = float((narrow - wide).abs().max())
    return Difference(prompt, at, plain[at], other[at], gap, moved, near_tie=own and gap < 2 * moved)
