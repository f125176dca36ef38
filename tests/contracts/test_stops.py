"""Every registered stop rule: one answer a row, from the laws alone."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from lope.core.budget import Budget
from lope.core.prompt import Prompt
from lope.core.protocols import Laws, Stop
from lope.core.rows import Rows
from lope.drafters.autoregressive import AutoregressiveDrafter
from lope.models.table_draft import TableDraftModel
from lope.shapes import SHAPES
from lope.stops import STOPS

NODES = (0, 1, 2, 3, 4)


@pytest.fixture(params=list(STOPS))
def stop(request: pytest.FixtureRequest) -> Any:
    return STOPS.make(request.param)


def rows(seed: int = 0) -> torch.Tensor:
    """Logits [5, 12] from nearly flat to nearly certain."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(5, 12, generator=generator) * torch.tensor([0.1, 1.0, 3.0, 6.0, 20.0])[:, None]


def laws(values: torch.Tensor, rest: float = 0.0, ids: torch.Tensor | None = None) -> Laws:
    count = len(values)
    return Laws(NODES[:count], Rows(values, ids, 12, rest), (0.5,) * count)


def decide(stop: Stop, given: Laws) -> list[bool]:
    return [ended for ended, _ in stop.should_stop(given, [()] * len(given.nodes))]


def obeys(stop: Stop) -> None:
    """What a shape relies on. A rule that saw which token is which could drop a token for its own sake."""
    logits = rows()
    probabilities = logits.softmax(-1)
    kept = probabilities.clone()
    answer = stop.should_stop(laws(probabilities), [()] * 5)
    assert len(answer) == 5
    assert all(isinstance(ended, bool) for ended, _ in answer)
    assert all(isinstance(memo, tuple) and all(isinstance(value, float) for value in memo) for _, memo in answer)
    assert torch.equal(probabilities, kept), "a rule only looks"
    decisions = [ended for ended, _ in answer]
    assert decisions == [decide(stop, laws(probabilities[row : row + 1]))[0] for row in range(5)], "row by row"
    shuffle = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    assert decide(stop, laws(probabilities[:, shuffle])) == decisions, "it does not know which token is which"
    held = shuffle.expand(5, 12)
    assert decide(stop, laws(probabilities[:, shuffle], ids=held)) == decisions
    infinity = float("-inf")
    assert decide(stop, laws(logits, infinity)) == decisions, "at temperature 0 it sees the softmax at 1"
    assert decide(stop, laws(logits + 3, infinity)) == decisions
    one_hot = torch.zeros(1, 12)
    one_hot[0, 3] = 1.0
    assert decide(stop, laws(one_hot)) in ([False], [True])


def test_rule_keeps_the_contract(stop):
    obeys(stop)


def test_token_at_the_stopping_node_is_kept(kit, stop):
    """A rule may end a draft below a row; the children of that row are drawn all the same."""
    for shape in SHAPES:
        draft = kit.grown(SHAPES.make(shape), budget=Budget(50, 50), model=TableDraftModel(6, 1, 2.0), stop=stop)
        assert draft.children[0]
        kit.check_draft(draft, Budget(50, 50), SHAPES.make(shape).draws(False), 1)


def test_requests_of_a_batch_stop_on_their_own(kit, stop):
    """Two texts, drafted together and apart, end where they end alone."""
    drafter = AutoregressiveDrafter(kit.wordy(6, 3, 6.0), SHAPES.make("chain:depth=8"), stop)
    prompts = [(0, 1), (2, 3, 4), (5,)]
    sessions = [drafter.open(Prompt(prompt), None) for prompt in prompts]
    asks = [
        kit.ask(session, budget=Budget(8, 8), sampling=kit.plain, prompt=prompt, seed=9)
        for session, prompt in zip(sessions, prompts, strict=True)
    ]
    together = drafter.propose(asks)
    for prompt, session, draft in zip(prompts, sessions, together, strict=True):
        [alone] = drafter.propose([kit.ask(session, budget=Budget(8, 8), sampling=kit.plain, prompt=prompt, seed=9)])
        assert kit.same_draft(draft, alone)


@dataclass(frozen=True)
class KnowsToken:
    """Stops where token 0 is likely: it knows which token is which."""

    def should_stop(self, given: Laws, memos: Any) -> list[tuple[bool, Any]]:
        values = given.rows.probabilities().values
        return [(bool(row[0] > 0.08), ()) for row in values]


@dataclass(frozen=True)
class LooksAtBatch:
    def should_stop(self, given: Laws, memos: Any) -> list[tuple[bool, Any]]:
        largest = given.rows.probabilities().values.amax(-1)
        return [(bool(value < largest.mean()), ()) for value in largest]


@dataclass(frozen=True)
class TakesLogitsForLaws:
    def should_stop(self, given: Laws, memos: Any) -> list[tuple[bool, Any]]:
        return [(bool(value < 0.8), ()) for value in given.rows.values.amax(-1)]


@pytest.mark.parametrize("mutant", [KnowsToken(), LooksAtBatch(), TakesLogitsForLaws()])
def test_mutants_are_caught(mutant):
    with pytest.raises(AssertionError):
        obeys(mutant)
