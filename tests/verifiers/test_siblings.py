"""The edges of the sibling test in float32: rounding may not break what exact arithmetic promises."""

import pytest
import torch
from torch import Tensor

from lope.core.chance import KeyedChance
from lope.core.draft import ROOT, Draft, Draw
from lope.core.prompt import Prompt
from lope.core.rows import Rows
from lope.core.sampling import Sampling
from lope.core.scores import Scores
from lope.verifiers import VERIFIERS

RULES = {
    "rejection": Draw.ONLY,
    "recursive": Draw.WITHOUT_REPLACEMENT,
    "recursive_with_replacement": Draw.INDEPENDENT,
}


class Reluctant(KeyedChance):
    """Refuses whenever a refusal has any probability at all."""

    def accept(self, probability: float) -> bool:
        return probability >= 1.0


class Refusing(KeyedChance):
    """Refuses always, as rounding might."""

    def accept(self, probability: float) -> bool:
        return False


def siblings(tokens: tuple[int, ...], draw: Draw, law: Tensor) -> Draft:
    count = len(tokens)
    rows = Rows(law[None], None, len(law), 0.0)
    return Draft(tokens, (ROOT,) * count, (draw,) * count, (0,) * count, rows, (0,) + (-1,) * count)


def scores(law: Tensor, count: int) -> Scores:
    return Scores(Rows(law.log().expand(count + 1, -1), None, len(law), float("-inf")), 1)


@pytest.mark.parametrize("name", RULES)
def test_a_draft_that_equals_the_target_is_always_accepted(name: str) -> None:
    logits = torch.randn(49_152, generator=torch.Generator().manual_seed(0))
    sampler = Sampling(temperature=1.0).begin(Prompt((0,)))
    rows = Rows(logits.expand(2, -1), None, 49_152, float("-inf"))
    law = sampler.filtered(rows, [(), ()]).values[0]
    token = KeyedChance(1, 0, 0).order(law, None, 1, 1)[0]
    verdict = VERIFIERS.make(name).verify(
        siblings((token,), RULES[name], law), Scores(rows, 1), sampler, Refusing(0, 0, 0)
    )
    assert verdict.path == (0,), "nothing is left over, so a refusal can only be rounding"


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("reluctance", [Reluctant, Refusing])
def test_a_token_without_mass_is_never_emitted(name: str, reluctance: type[KeyedChance]) -> None:
    """Even where the draft's law takes all that the target owes, so that nothing is left over."""
    target = torch.tensor([0.0, 1.0, 0.0, 0.0])
    law = torch.tensor([1e-9, 1.0, 0.0, 0.0])
    sampler = Sampling(temperature=1.0).begin(Prompt((0,)))
    verdict = VERIFIERS.make(name).verify(
        siblings((0,), RULES[name], law), scores(target, 1), sampler, reluctance(0, 0, 0)
    )
    assert verdict.tokens == (1,)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("kept", [Sampling(temperature=1.0, top_k=2), Sampling(temperature=1.0, top_p=0.7), Sampling()])
def test_a_token_that_the_filters_took_away_is_never_emitted(name: str, kept: Sampling) -> None:
    target = torch.tensor([0.45, 0.4, 0.1, 0.05])
    allowed = {0, 1} if kept.temperature else {0}
    for seed in range(20):
        draft = siblings((3,), RULES[name], torch.tensor([0.1, 0.1, 0.1, 0.7]))
        verdict = VERIFIERS.make(name).verify(
            draft, scores(target, 1), kept.begin(Prompt((0,))), KeyedChance(seed, 1, 1)
        )
        assert set(verdict.tokens) <= allowed


def test_the_rest_of_a_peaked_draft_law_does_not_cancel() -> None:
    """1 - law[token] would be 0 in float32; the two other tokens are still told apart."""
    law = torch.tensor([1.0, 3e-9, 1e-9])
    target = torch.tensor([0.0, 0.25, 0.75])
    accepted = 0
    for seed in range(400):
        chance = KeyedChance(seed, 1, 1)
        draft = siblings((0, 1), Draw.WITHOUT_REPLACEMENT, law)
        sampler = Sampling(temperature=1.0).begin(Prompt((0,)))
        accepted += VERIFIERS.make("recursive").verify(draft, scores(target, 2), sampler, chance).path == (1,)
    assert accepted / 400 == pytest.approx(0.25 / 0.75, abs=0.08)


def test_the_chain_rule_refuses_siblings() -> None:
    draft = siblings((0, 1), Draw.ONLY, torch.tensor([0.5, 0.5]))
    with pytest.raises(AssertionError, match="one drawn child"):
        VERIFIERS.make("rejection").verify(
            draft,
            scores(torch.tensor([0.0, 1.0]), 2),
            Sampling(temperature=1.0).begin(Prompt((0,))),
            KeyedChance(0, 0, 0),
        )
