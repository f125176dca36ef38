"""Exact laws by visiting every outcome of chance: depth-first replay of drafting and verification on a table model."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, TypeVar

import torch
from torch import Tensor

from lope.core.draft import Draft
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Chance, Job, Target, Verifier
from lope.core.sampling import PipelineSampler, Sampling
from lope.core.scores import ALL, Needs
from lope.models.table import TableModel

Result = TypeVar("Result")
Propose = Callable[[Path, int, Chance], Draft]


class EnumeratingChance:
    """Follows a script of branches, then takes the first branch everywhere; knows the probability of what it did."""

    def __init__(self, script: list[int]) -> None:
        self._script = script
        self.taken: list[int] = []
        self.widths: list[int] = []
        self.probability = 1.0

    def accept(self, probability: float) -> bool:
        probability = min(1.0, max(0.0, probability))
        return self._branch([probability, 1.0 - probability]) == 0

    def order(self, weights: Tensor, ids: Tensor | None, count: int, position: int) -> list[int]:
        left: list[float] = weights.tolist()
        columns: list[int] = []
        while len(columns) < count and sum(left) > 0.0:
            total = sum(left)
            columns.append(self._branch([weight / total for weight in left]))
            left[columns[-1]] = 0.0
        return columns

    def gumbel(self, count: int, ids: Tensor | None, position: int) -> Tensor:
        raise AssertionError("continuous noise cannot be enumerated")

    def _branch(self, probabilities: list[float]) -> int:
        options = [option for option, probability in enumerate(probabilities) if probability > 0.0]
        level = len(self.taken)
        chosen = self._script[level] if level < len(self._script) else 0
        self.taken.append(chosen)
        self.widths.append(len(options))
        self.probability *= probabilities[options[chosen]]
        return options[chosen]


def outcomes(run: Callable[[EnumeratingChance], Result]) -> Iterator[tuple[float, Result]]:
    """Every outcome of `run`, with its probability."""
    script: list[int] = []
    while True:
        chance = EnumeratingChance(script)
        result = run(chance)
        yield chance.probability, result
        script, widths = chance.taken, chance.widths
        while script and script[-1] + 1 == widths[len(script) - 1]:
            script.pop()
        if not script:
            return
        script[-1] += 1


def sampler_at(sampling: Sampling, prompt: Path, emitted: Path) -> PipelineSampler:
    sampler = sampling.begin(Prompt(prompt))
    sampler.commit(emitted)
    return sampler


def plain_law(target: Target[Any], vocabulary: int, sampling: Sampling, prompt: Path, count: int) -> Tensor:
    """The joint law [V] * count of the next `count` tokens of plain decoding, written down by the chain rule."""
    law = torch.zeros((vocabulary,) * count, dtype=torch.float64)
    rows: dict[Path, Tensor] = {}
    for tokens in product(range(vocabulary), repeat=count):
        probability = 1.0
        for length in range(count):
            before = tokens[:length]
            if before not in rows:
                empty = Draft((), (), (), ())
                scores = target.score([Job(target.open(Prompt(prompt + before)), empty, Needs(logits=ALL))])[0]
                rows[before] = sampler_at(sampling, prompt, before).filtered(scores.logits, [()]).dense(0)
            probability *= float(rows[before][tokens[length]])
        law[tokens] = probability
    return law


def speculative_law(
    target: TableModel, sampling: Sampling, prompt: Path, count: int, propose: Propose, verifier: Verifier
) -> Tensor:
    """The joint law [V] * count of the next `count` tokens of rounds of drafting and verifying.

    Given the text so far the rounds are independent, so the outcomes of a round are visited once for each text. Drafts
    are as deep as the tokens that are still owed, less one: what the engine's cap does.
    """
    law = torch.zeros((target.vocabulary,) * count, dtype=torch.float64)

    def follow(emitted: Path, probability: float) -> None:
        if len(emitted) == count:
            law[emitted] += probability
            return
        for tokens, share in one_round(target, sampling, prompt, emitted, count, propose, verifier).items():
            follow(emitted + tokens, probability * share)

    follow((), 1.0)
    return law


def one_round(
    target: TableModel,
    sampling: Sampling,
    prompt: Path,
    emitted: Path,
    count: int,
    propose: Propose,
    verifier: Verifier,
) -> dict[Path, float]:
    """The law of what one round emits after `emitted`."""
    session = target.open(Prompt(prompt + emitted))
    sampler = sampler_at(sampling, prompt, emitted)
    law: dict[Path, float] = {}
    for probability, draft in outcomes(lambda chance: propose(prompt + emitted, count - len(emitted) - 1, chance)):
        scores = target.score([Job(session, draft, Needs(logits=ALL))])[0]
        for share, verdict in outcomes(lambda chance: verifier.verify(draft, scores, sampler, chance)):  # noqa: B023
            law[verdict.tokens] = law.get(verdict.tokens, 0.0) + probability * share
    return law
