"""The loop of all model drafters: one pass a level, memos handed down, own probabilities, processors along paths."""

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from lope.core.budget import Budget
from lope.core.chance import KeyedChance
from lope.core.draft import ROOT
from lope.core.prompt import Prompt
from lope.core.protocols import Ask, Laws
from lope.core.sampling import Sampling
from lope.drafters.autoregressive import AutoregressiveDrafter
from lope.drafters.own_sampling import OwnSampling
from lope.models.table_draft import TableDraftModel
from lope.shapes.chain import ChainShape
from lope.shapes.rsd_c import RsdCShape
from lope.stops.never import NeverStop

PLAIN = Sampling(temperature=1.0)


class Counting(TableDraftModel):
    """Notes how many requests each pass had."""

    passes: Any = []

    def step(self, steps: Any) -> Any:
        self.passes.append([len(step.frontier) for step in steps])
        return super().step(steps)


@dataclass(frozen=True)
class Watching:
    """Stops nothing (or below `depth`), and hands down the depth as memo."""

    seen: list[Laws] = field(default_factory=list)
    memos: list[Any] = field(default_factory=list)
    depth: float = 99.0

    def should_stop(self, laws: Laws, memos: Any) -> Any:
        self.seen.append(laws)
        self.memos.append(list(memos))
        depths = [memo[0] if memo else 0.0 for memo in memos]
        return [(depth >= self.depth, (depth + 1.0,)) for depth in depths]

    def learn(self, record: Any) -> None:
        pass


def ask(drafter: Any, prompt: Any, budget: Budget, sampling: Sampling = PLAIN) -> Ask[Any]:
    sampler = drafter.sampling(sampling).begin(Prompt(prompt))
    return Ask(drafter.open(Prompt(prompt), None), budget, sampler, KeyedChance(0, 0, len(prompt)))


def test_one_pass_a_level_for_all_requests():
    model = Counting()
    model.passes.clear()
    drafter = AutoregressiveDrafter(model, RsdCShape((2, 2, 1)), NeverStop())
    wide = Budget(99, 99)
    drafter.propose([ask(drafter, (0,), wide), ask(drafter, (1,), Budget(99, 2)), ask(drafter, (2,), Budget(0, 0))])
    assert model.passes == [[1, 1], [2, 2], [4]]


def test_a_memo_is_handed_from_parent_row_to_child_row():
    stop = Watching()
    drafter = AutoregressiveDrafter(TableDraftModel(), RsdCShape((2, 2, 1)), stop)
    drafter.propose([ask(drafter, (0, 1), Budget(99, 99))])
    assert stop.memos == [[()], [(1.0,)] * 2, [(2.0,)] * 4]


@pytest.mark.parametrize("temperature", [0.0, 0.6])
def test_own_is_the_probability_of_a_rows_own_token(temperature):
    """At temperature 0 under the softmax at 1."""
    stop = Watching()
    drafter = AutoregressiveDrafter(TableDraftModel(6), RsdCShape((2, 2, 1)), stop)
    sampling = Sampling(temperature=temperature, top_p=0.95 if temperature else None)
    [draft] = drafter.propose([ask(drafter, (0, 1), Budget(99, 99), sampling)])
    laws = {node: given.rows.probabilities().dense(row) for given in stop.seen for row, node in enumerate(given.nodes)}
    own = {node: value for given in stop.seen for node, value in zip(given.nodes, given.own, strict=True)}
    assert own.pop(ROOT) == 1.0
    assert len(own) == 6
    for node, value in own.items():
        assert value == pytest.approx(float(laws[draft.parents[node]][draft.tokens[node]]), rel=1e-9)


def test_the_budgets_stop_rule_comes_before_the_drafters():
    engine_stop, mine = Watching(), Watching(depth=1.0)
    drafter = AutoregressiveDrafter(TableDraftModel(), ChainShape(5), engine_stop)
    [draft] = drafter.propose([ask(drafter, (0, 1), Budget(99, 99, stop=mine))])
    assert len(draft) == 2
    assert not engine_stop.seen


def test_processors_see_each_path():
    """A repetition penalty counts what stands on the path above."""
    drafter = AutoregressiveDrafter(TableDraftModel(), ChainShape(3), NeverStop())
    sampling = Sampling(temperature=1.0, repetition_penalty=3.0)
    [draft] = drafter.propose([ask(drafter, (0, 1), Budget(99, 99), sampling)])
    text: tuple[int, ...] = (0, 1)
    for node in range(3):
        row = TableDraftModel().table.after([text])[0].clone()
        for token in set(text):
            row[token] = row[token] * 3.0 if row[token] < 0 else row[token] / 3.0
        law = draft.laws.dense(draft.law_of[draft.parents[node] + 1])
        assert torch.allclose(law, row.softmax(-1), atol=1e-12)
        text += (draft.tokens[node],)


def test_own_sampling_replaces_the_requests():
    drafter = AutoregressiveDrafter(TableDraftModel(), ChainShape(3), NeverStop(), own=OwnSampling(0.5, 2))
    request = Sampling(temperature=1.0, top_k=9, repetition_penalty=1.5, min_p=0.1)
    assert drafter.sampling(request) == Sampling(temperature=0.5, top_k=2, repetition_penalty=1.5, min_p=0.1)
    assert drafter.sampling(Sampling()) == Sampling()


def test_a_greedy_drafter_names_points_for_a_sampled_request():
    drafter = AutoregressiveDrafter(TableDraftModel(), ChainShape(3), NeverStop(), own=OwnSampling(0.0))
    assert drafter.draws(False) == drafter.draws(True) == ChainShape(3).draws(True)
    [draft] = drafter.propose([ask(drafter, (0, 1), Budget(99, 99))])
    assert set(draft.draws) == ChainShape(3).draws(True)
