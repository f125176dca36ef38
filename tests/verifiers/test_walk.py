import random
from collections.abc import Sequence

import pytest
import torch
from tests.laws.drafting import TableDrafter
from tests.laws.situations import random_form

from lope.core.chance import KeyedChance
from lope.core.draft import ROOT, Draft, Draw
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Job
from lope.core.rows import Rows
from lope.core.sampling import PipelineSampler, Sampling
from lope.core.scores import ALL, Needs
from lope.models.table import TableModel
from lope.verifiers import VERIFIERS
from lope.verifiers.walk import matching


class Watched(PipelineSampler):
    """Notes which rows were filtered."""

    def watch(self) -> "Watched":
        self.seen: list[tuple[int, Path]] = []
        return self

    def filtered(self, logits: Rows, paths: Sequence[Path]) -> Rows:
        self.seen += [(len(logits), path) for path in paths]
        return super().filtered(logits, paths)


@pytest.mark.parametrize("name", [name for name in VERIFIERS if name != "greedy"])
@pytest.mark.parametrize("seed", range(10))
def test_a_verdict_is_a_path_and_one_token_more(name: str, seed: int) -> None:
    verifier = VERIFIERS.make(name)
    draws = verifier.accepts(greedy=False)
    assert draws is not None
    form = random_form(random.Random(seed), tuple(sorted(draws, key=lambda draw: draw.value)), 4)
    target = TableModel(5, seed=seed)
    draft = TableDrafter(form, TableModel(5, seed=seed, spread=0.9)).propose((1, 2), 4, KeyedChance(seed, 0, 2))
    scores = target.score([Job(target.open(Prompt((1, 2))), draft, Needs(logits=ALL))])[0]
    sampler = Watched(Sampling(temperature=1.0), (), 2).watch()
    verdict = verifier.verify(draft, scores, sampler, KeyedChance(seed, 1, 2))
    assert len(verdict.tokens) == len(verdict.path) + 1
    assert verdict.path == (draft.path(verdict.path[-1]) if verdict.path else ())
    assert verdict.tokens[:-1] == tuple(draft.tokens[node] for node in verdict.path)
    assert all(draft.firsts[node] == node for node in verdict.path), "children hang under firsts"
    assert sampler.seen == [(1, verdict.tokens[:depth]) for depth in range(len(verdict.tokens))], "one visited row each"


def test_the_same_chance_gives_the_same_verdict() -> None:
    target = TableModel(5, seed=1)
    form = random_form(random.Random(2), (Draw.WITHOUT_REPLACEMENT,), 3)
    draft = TableDrafter(form, TableModel(5, seed=2)).propose((1, 2), 3, KeyedChance(3, 0, 2))
    scores = target.score([Job(target.open(Prompt((1, 2))), draft, Needs(logits=ALL))])[0]
    sampler = Sampling(temperature=1.0).begin(Prompt((1, 2)))
    verdicts = [VERIFIERS.make("recursive").verify(draft, scores, sampler, KeyedChance(3, 1, 2)) for _ in range(2)]
    assert verdicts[0] == verdicts[1]


def test_matching_names_the_eldest_of_copies() -> None:
    law = Rows(torch.tensor([[0.5, 0.5]]), None, 2, 0.0)
    draft = Draft((1, 1, 0), (ROOT, ROOT, ROOT), (Draw.INDEPENDENT,) * 3, (0,) * 3, law, (0, -1, -1, -1))
    assert [matching(draft, ROOT, token) for token in (0, 1, 2)] == [2, 0, None]
