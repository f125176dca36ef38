"""Law 2: the joint law of three emitted tokens is the target's, by exact enumeration; known faults break it."""

import random

import pytest
from tests.laws import mutants
from tests.laws.drafting import Fork
from tests.laws.enumeration import plain_law, speculative_law
from tests.laws.mutants import Mutant
from tests.laws.situations import FORMS, PAIR, SETTINGS, TWINS, VERIFIED, Setting, law_pair, random_form
from torch import Tensor

from lope.core.draft import Draft, Draw
from lope.core.prompt import Path
from lope.core.protocols import Chance, Sampler, Verifier
from lope.core.scores import Scores
from lope.core.verdict import Verdict
from lope.engine import planted
from lope.engine.planted import FaultyVerifier
from lope.verifiers import VERIFIERS

PROMPT = (2, 0)
PAIRS = [(name, form) for name, forms in VERIFIED.items() for form in forms]
NAMES = list(SETTINGS)


def error(seed: int, form: Fork, setting: Setting, mutant: Mutant, tokens: int = 3) -> float:
    """The largest difference between the law of speculative decoding and that of plain decoding."""
    target, drafter = law_pair(seed, form, setting)

    def propose(context: Path, depth: int, chance: Chance) -> Draft:
        return mutant.changed(drafter.propose(context, depth, chance))

    law = speculative_law(target, setting.target, PROMPT, tokens, propose, mutant.verifier)
    return largest_difference(law, plain_law(target, target.vocabulary, setting.target, PROMPT, tokens))


def largest_difference(law: Tensor, other: Tensor) -> float:
    assert float(law.sum()) == pytest.approx(1.0, abs=1e-12)
    return float((law - other).abs().max())


def made(name: str) -> Mutant:
    verifier: Verifier = VERIFIERS.make(name)
    return Mutant(verifier)


@pytest.mark.parametrize(("name", "form"), PAIRS)
def test_three_tokens_have_the_targets_law(name: str, form: str) -> None:
    start = 3 * PAIRS.index((name, form))
    for index in range(start, start + 3):
        setting = SETTINGS[NAMES[index % len(NAMES)]]
        assert error(index, FORMS[form], setting, made(name)) < 1e-9, (index, NAMES[index % len(NAMES)])


@pytest.mark.parametrize(
    ("name", "form"),
    [("rejection", FORMS["chain"]), ("recursive", PAIR), ("recursive_with_replacement", TWINS)],
)
def test_three_tokens_have_the_targets_law_on_many_laws(name: str, form: Fork) -> None:
    for seed in range(16):
        assert error(seed, form, SETTINGS[NAMES[seed % len(NAMES)]], made(name)) < 1e-9


@pytest.mark.parametrize("name", ["recursive", "recursive_with_replacement", "coupled"])
def test_two_tokens_have_the_targets_law_on_random_trees(name: str) -> None:
    verifier = made(name)
    accepted = verifier.verifier.accepts(greedy=False)
    assert accepted is not None
    draws = tuple(sorted(accepted, key=lambda draw: draw.value))
    for seed in range(12):
        form = random_form(random.Random(seed), draws, depth=1)
        assert error(100 + seed, form, SETTINGS[NAMES[seed % len(NAMES)]], verifier, tokens=2) < 1e-9


PAIR_AND_POINTS = Fork(Draw.WITHOUT_REPLACEMENT, (Fork(),), (Fork(), Fork()))
MUTANTS = {
    "no residual": (PAIR, Mutant(FaultyVerifier(residual=False))),
    "unrenormalised draft": (PAIR, Mutant(FaultyVerifier(next_law=planted.unrenormalised))),
    "shuffled siblings": (PAIR, Mutant(VERIFIERS.make("recursive"), planted.shuffled)),
    "dropped drawn tokens": (PAIR, Mutant(VERIFIERS.make("recursive"), planted.dropped)),
    "dropped drawn tokens of a chain": (FORMS["chain"], Mutant(VERIFIERS.make("rejection"), planted.dropped)),
    "merged duplicates": (TWINS, Mutant(VERIFIERS.make("recursive_with_replacement"), planted.merged)),
    "masked, not subtracted": (PAIR, Mutant(mutants.Masking())),
    "points first": (PAIR_AND_POINTS, Mutant(VERIFIERS.make("recursive"), mutants.points_first)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_breaks_the_law(name: str) -> None:
    form, mutant = MUTANTS[name]
    assert any(error(seed, form, SETTINGS["plain"], mutant) > 1e-6 for seed in range(8))


@pytest.mark.parametrize("name", MUTANTS)
def test_without_the_fault_the_same_draft_keeps_the_law(name: str) -> None:
    form, _ = MUTANTS[name]
    sound = FaultyVerifier() if form is not TWINS else VERIFIERS.make("recursive_with_replacement")
    assert error(0, form, SETTINGS["plain"], Mutant(sound)) < 1e-9


@pytest.mark.parametrize("arrange", [None, planted.shuffled, planted.dropped, planted.merged])
def test_whatever_is_tested_as_a_point_is_exact(arrange: planted.Arrange | None) -> None:
    """A point's test has the target's law for each candidate by itself, so it does not matter how it was chosen."""
    recursive = VERIFIERS.make("recursive")

    class Named:
        lossless, shares_noise, accepts = True, False, recursive.accepts

        def verify(self, draft: Draft, scores: Scores, sampler: Sampler, chance: Chance) -> Verdict:
            verdict: Verdict = recursive.verify(mutants.named(draft), scores, sampler, chance)
            return verdict

    form = TWINS if arrange is planted.merged else PAIR
    assert error(1, form, SETTINGS["plain"], Mutant(Named(), arrange)) < 1e-9
