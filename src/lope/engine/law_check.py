"""Is every pair of drafter and verifier lossless? Three tokens through the whole loop, against their exact law."""

import itertools
import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lope.core.budget import UNLIMITED
from lope.core.errors import SettingError
from lope.core.noise import key
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Drafter, Verifier
from lope.core.rows import Rows
from lope.core.sampling import Sampling
from lope.core.statistics import chi_square, holm
from lope.drafters import DRAFTERS
from lope.drafters.autoregressive import AutoregressiveDrafter
from lope.engine.answer import FinishReason
from lope.engine.loop import Loop
from lope.engine.planted import FAULTS
from lope.engine.remembering import RememberingSampler
from lope.engine.request import Request
from lope.models.table import TableModel
from lope.models.table_draft import TableDraftModel
from lope.policies.fixed import FixedPolicy
from lope.shapes import SHAPES
from lope.stops.never import NeverStop
from lope.verifiers import VERIFIERS

_LENGTH = 3
_PROMPT = Prompt((0, 2, 1, 0, 2, 3, 1, 0))
_SAMPLING = Sampling(temperature=0.9, top_p=0.97, repetition_penalty=1.15)
_LEVEL = 0.01
_BATCH = 250
_FEWEST = 500
# wishes that leave room for every fault to show: families of several children, two levels deep
_WISHES = {
    "rsd_c": "rsd_c:branching=3-2",
    "rsd_s": "rsd_s:width=3,depth=2",
    "independent": "independent:chains=3,depth=2",
}

Report = Callable[[int, int], None]


def ignore(done: int, count: int) -> None:
    """Report to nobody."""


@dataclass(frozen=True)
class PairResult:
    """One pair against the target's law: Pearson's statistic over the joint law of three tokens."""

    drafter: str
    shape: str | None
    verifier: str
    statistic: float
    p_value: float
    passed: bool


@dataclass(frozen=True, eq=False)
class Pair:
    """What is checked: a drafter made of a table, and a verifier."""

    drafter_name: str
    shape: str | None
    verifier_name: str
    drafter: Drafter[Any, Any]
    verifier: Verifier


class TokenEnding:
    """Ends after a number of tokens; tables have no text."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.reason: FinishReason | None = None

    def feed(self, tokens: Path) -> tuple[int, str]:
        """Cut at the count."""
        taken = min(len(tokens), self.left)
        self.left -= taken
        if not self.left:
            self.reason = FinishReason.LENGTH
        return taken, ""


def pairs(plant: str | None = None) -> list[Pair]:
    """Every registered shape and verifier that go together at a temperature above 0; with the fault in them."""
    if plant is not None and plant not in FAULTS:
        raise SettingError(f"no fault {plant!r} can be planted (there are: {', '.join(FAULTS)})")
    fault = None if plant is None else FAULTS[plant]
    found = []
    for name, shape, drafter in _drafters():
        kinds = drafter.draws(False)
        if fault is not None and not fault.touches(kinds):
            continue
        for verifier_name in VERIFIERS:
            verifier: Verifier = VERIFIERS.make(verifier_name)
            accepted = verifier.accepts(False)
            # with shared noise the target's token does not depend on the draft, faulty or not
            if accepted is None or not kinds <= accepted or (fault is not None and verifier.shares_noise):
                continue
            faulty = drafter if fault is None else fault.drafter(drafter)
            found.append(Pair(name, shape, verifier_name, faulty, (fault and fault.verifier) or verifier))
    return found


def check_pair_law(number: int, samples: int, seed: int, plant: str | None = None) -> tuple[float, float]:
    """(statistic, p-value) of pair `number` of `pairs(plant)`; runs in a process of its own."""
    torch.set_num_threads(1)
    pair = pairs(plant)[number]
    target = TableModel(vocabulary=4, seed=key(seed, 1) >> 40, spread=1.2)
    law = exact_law(target)
    counts = torch.zeros(law.shape, dtype=torch.float64)
    known: dict[tuple[Path, bytes], Rows] = {}
    for start in range(0, samples, _BATCH):
        seeds = [key(seed, number, sample) >> 1 for sample in range(start, min(start + _BATCH, samples))]
        for tokens in _answers(target, pair, seeds, known):
            counts[tokens] += 1
    return chi_square(counts, law)


def check_laws(samples: int, seed: int, plant: str | None = None, report: Report = ignore) -> list[PairResult]:
    """Check every pair, in parallel processes; passed or not at level 0.01 over all of them (Holm's correction).

    report(done, all) is called as pairs end. Raises SettingError for an unknown fault or too few samples.
    """
    if samples < _FEWEST:
        raise SettingError(f"samples must be at least {_FEWEST} for the test to say anything, not {samples}")
    checked = pairs(plant)
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        jobs = [pool.submit(check_pair_law, number, samples, seed, plant) for number in range(len(checked))]
        for done, job in enumerate(as_completed(jobs), start=1):
            job.result()
            report(done, len(jobs))
    found = [job.result() for job in jobs]
    rejected = holm([p_value for _, p_value in found], _LEVEL)
    return [
        PairResult(pair.drafter_name, pair.shape, pair.verifier_name, statistic, p_value, not bad)
        for pair, (statistic, p_value), bad in zip(checked, found, rejected, strict=True)
    ]


def exact_law(target: TableModel) -> Tensor:
    """[V, V, V]: the law of the first three tokens of a plain answer, written down."""
    size = target.vocabulary
    law = torch.ones((size,) * _LENGTH, dtype=torch.float64)
    sampler = _SAMPLING.begin(_PROMPT)
    for length in range(_LENGTH):
        for words in itertools.product(range(size), repeat=length):
            logits = Rows(target.after([_PROMPT.ids + words]), None, size, float("-inf"))
            after = sampler.filtered(logits, [words]).dense(0)
            law[words] *= after.view(size, *(1,) * (_LENGTH - length - 1))
    return law


def _answers(target: TableModel, pair: Pair, seeds: list[int], known: dict[tuple[Path, bytes], Rows]) -> list[Path]:
    requests = [_request(target, pair, seed, number, known) for number, seed in enumerate(seeds)]
    loop = Loop(target, pair.drafter, FixedPolicy(UNLIMITED, UNLIMITED))
    for _ in loop.run(requests):
        pass
    return [request.answer().tokens for request in requests]


def _request(target: TableModel, pair: Pair, seed: int, number: int, known: dict[tuple[Path, bytes], Rows]) -> Request:
    session = target.open(_PROMPT)
    return Request(
        number,
        session=session,
        draft_session=pair.drafter.open(_PROMPT, session),
        sampler=RememberingSampler(_SAMPLING.begin(_PROMPT), (), known),
        draft_sampler=RememberingSampler(pair.drafter.sampling(_SAMPLING).begin(_PROMPT), (), known),
        verifier=pair.verifier,
        ending=TokenEnding(_LENGTH),
        seed=seed,
        context=_PROMPT,
    )


def _drafters() -> Iterator[tuple[str, str | None, Drafter[Any, Any]]]:
    """Drafters that need no model of their own, and a table model with every shape."""
    for name in ("none", "ngram"):
        yield name, None, DRAFTERS.make(name)
    model = TableDraftModel(vocabulary=4, seed=77, spread=1.0)
    for name in SHAPES:
        text = _WISHES.get(name, name)
        yield "model", text, AutoregressiveDrafter(model, SHAPES.make(text), NeverStop())
