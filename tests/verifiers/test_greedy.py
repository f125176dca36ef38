import random

import pytest
from tests.laws.drafting import TableDrafter
from tests.laws.situations import random_form
from tests.verifiers.decoding import decode, nothing

from lope.core.draft import Draft, Draw
from lope.core.prompt import Path
from lope.core.protocols import Verifier
from lope.core.sampling import Sampling
from lope.models.table import TableModel
from lope.verifiers import VERIFIERS

SETTINGS = [Sampling(), Sampling(repetition_penalty=1.4), Sampling(frequency_penalty=0.5, logit_bias={2: 1.0})]


def best_tokens(target: TableModel, prompt: Path, count: int) -> Path:
    """Greedy decoding without a sampler: the definition."""
    context = prompt
    for _ in range(count):
        context += (int(target.after([context])[0].argmax()),)
    return context[len(prompt) :]


@pytest.mark.parametrize("name", list(VERIFIERS))
@pytest.mark.parametrize("sampling", SETTINGS)
def test_every_verifier_emits_the_best_tokens_at_temperature_0(name: str, sampling: Sampling) -> None:
    verifier: Verifier = VERIFIERS.make(name)
    draws = verifier.accepts(greedy=True)
    assert draws is not None
    kinds = tuple(sorted(draws, key=lambda draw: draw.value))
    saved = 0
    for seed in range(8):
        target = TableModel(vocabulary=6, seed=seed)
        drafter = TableDrafter(
            random_form(random.Random(seed), kinds, 3), TableModel(6, seed % 2 * 100 + seed), Sampling(temperature=1.0)
        )
        plain, _ = decode(target, sampling, (1, 2), 16, nothing, VERIFIERS.make("greedy"), seed)
        if sampling == Sampling():
            assert plain == best_tokens(target, (1, 2), 16)
        tokens, passes = decode(target, sampling, (1, 2), 16, drafter.propose, verifier, seed)
        assert tokens == plain
        saved += 16 - passes
    assert saved > 0


def test_the_longest_path_of_best_tokens_is_accepted() -> None:
    target = TableModel(vocabulary=6, seed=3)
    best = best_tokens(target, (0, 1), 4)
    wrong = (best[0] + 1) % 6

    def propose(context: Path, depth: int, chance: object) -> Draft:
        return Draft(
            (wrong, best[0], wrong, best[1], best[2]), (-1, -1, 0, 1, 3), (Draw.POINT,) * 5, (0,) * 5, None, (-1,) * 6
        )

    tokens, passes = decode(target, Sampling(), (0, 1), 4, propose, VERIFIERS.make("greedy"), 0)
    assert (tokens, passes) == (best, 1)


def test_greedy_refuses_to_sample() -> None:
    assert VERIFIERS.make("greedy").accepts(greedy=False) is None
