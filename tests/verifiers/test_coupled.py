"""Law 7: with shared noise the same seed gives the same text, with and without drafting, whatever was drafted."""

import random

import pytest
import torch
from tests.laws.drafting import TableDrafter
from tests.laws.enumeration import sampler_at
from tests.laws.situations import CHAIN, random_form
from tests.verifiers.decoding import decode, nothing

from lope.core.chance import KeyedChance, SharedChance
from lope.core.draft import Draft, Draw
from lope.core.noise import gumbel_noise
from lope.core.prompt import Path
from lope.core.protocols import Chance
from lope.core.rows import Rows
from lope.core.sampling import Sampling
from lope.models.table import TableModel
from lope.verifiers import VERIFIERS

COUPLED = VERIFIERS.make("coupled")
SAMPLINGS = [
    Sampling(temperature=1.0),
    Sampling(temperature=0.8, top_p=0.9, repetition_penalty=1.2),
    Sampling(temperature=1.3, top_k=5, presence_penalty=0.3),
]


def gumbel_max_text(target: TableModel, sampling: Sampling, prompt: Path, count: int, seed: int) -> Path:
    """Plain sampling by its definition: argmax of log-probability plus the noise of (seed, position, token)."""
    text: Path = ()
    for _ in range(count):
        sampler = sampler_at(sampling, prompt, text)
        logits = Rows(target.after([prompt + text]), None, target.vocabulary, float("-inf"))
        law = sampler.filtered(logits, [()]).dense(0)
        noise = gumbel_noise(seed, len(prompt) + len(text), torch.arange(target.vocabulary))
        text += (int((law.log() + noise).argmax()),)
    return text


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_the_text_depends_on_the_seed_alone(sampling: Sampling) -> None:
    for seed in range(8):
        target = TableModel(vocabulary=8, seed=seed)
        text = gumbel_max_text(target, sampling, (1, 2), 20, seed)
        assert decode(target, sampling, (1, 2), 20, nothing, COUPLED, seed) == (text, 20)
        form = random_form(random.Random(seed), tuple(Draw), 3)
        drafter = TableDrafter(form, TableModel(8, seed=seed), sampling)

        def drafts_by_itself(context: Path, depth: int, chance: Chance, drafter: TableDrafter = drafter) -> Draft:
            return drafter.propose(context, depth, KeyedChance(9, 9, len(context)))

        assert decode(target, sampling, (1, 2), 20, drafter.propose, COUPLED, seed)[0] == text
        assert decode(target, sampling, (1, 2), 20, drafts_by_itself, COUPLED, seed)[0] == text


def test_another_seed_gives_another_text() -> None:
    target = TableModel(vocabulary=8, seed=0)
    texts = {decode(target, SAMPLINGS[0], (1, 2), 20, nothing, COUPLED, seed)[0] for seed in range(10)}
    assert len(texts) == 10


def test_a_draft_with_the_targets_law_and_noise_is_always_accepted() -> None:
    target = TableModel(vocabulary=8, seed=4)
    drafter = TableDrafter(CHAIN, target)
    text, passes = decode(target, Sampling(temperature=1.0), (1, 2), 21, drafter.propose, COUPLED, 5)
    assert (len(text), passes) == (21, 7)


def test_shared_noise_agrees_more_often_than_independent_noise() -> None:
    target = TableModel(vocabulary=8, seed=4)
    near = TableModel(vocabulary=8, seed=4, spread=0.8)
    hits = {"shared": 0, "independent": 0}
    for seed in range(300):
        for kind, chance in (("shared", SharedChance(seed)), ("independent", KeyedChance(seed, 0, 2))):
            law = near.after([(1, 2)])[0].softmax(-1)
            drafted = chance.order(law, None, 1, 2)[0]
            own = SharedChance(seed).order(target.after([(1, 2)])[0].softmax(-1), None, 1, 2)[0]
            hits[kind] += drafted == own
    assert hits["shared"] > 1.5 * hits["independent"]
