"""How often candidates are accepted: values that the papers give, by exact enumeration at one node."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.enumeration import EnumeratingChance, outcomes

from lope.core.draft import Draft, Draw
from lope.core.prompt import Prompt
from lope.core.protocols import Chance
from lope.core.rows import Rows
from lope.core.sampling import Sampling
from lope.core.scores import Scores
from lope.core.verdict import Verdict
from lope.verifiers import VERIFIERS


def acceptance(name: str, draw: Draw, children: int, target: list[float], draft: list[float]) -> float:
    """The probability that one of `children` drawn candidates is accepted."""
    law = torch.tensor([draft], dtype=torch.float64)
    logits = torch.tensor([target] * (children + 1), dtype=torch.float64).log()
    sampler = Sampling(temperature=1.0).begin(Prompt((0,)))
    verifier = VERIFIERS.make(name)

    def tokens(chance: Chance) -> list[int]:
        if draw is Draw.INDEPENDENT:
            return [chance.order(law[0], None, 1, 1)[0] for _ in range(children)]
        return chance.order(law[0], None, children, 1)

    def run(chance: EnumeratingChance) -> Verdict:
        drawn = tokens(chance)
        count = len(drawn)
        draft = Draft(
            tuple(drawn),
            (-1,) * count,
            (draw,) * count,
            (0,) * count,
            Rows(law, None, len(target), 0.0),
            (0,) + (-1,) * count,
        )
        verdict: Verdict = verifier.verify(
            draft, Scores(Rows(logits, None, len(target), float("-inf")), 1), sampler, chance
        )
        return verdict

    return sum(probability for probability, verdict in outcomes(run) if verdict.path)


HIGH, LOW = [0.9, 0.1], [0.1, 0.9]


def test_two_tokens_two_siblings() -> None:
    """The figures of the RSD notes: target .9/.1 and draft .1/.9."""
    assert acceptance("rejection", Draw.ONLY, 1, HIGH, LOW) == pytest.approx(float(Fraction(1, 5)))
    with_replacement = acceptance("recursive_with_replacement", Draw.INDEPENDENT, 2, HIGH, LOW)
    assert with_replacement == pytest.approx(float(Fraction(7, 25)))
    assert acceptance("recursive", Draw.WITHOUT_REPLACEMENT, 2, HIGH, LOW) == pytest.approx(1.0)


laws = st.lists(st.integers(1, 50), min_size=4, max_size=4).map(
    lambda counts: [count / sum(counts) for count in counts]
)


@settings(max_examples=30, deadline=None)
@given(laws, laws)
def test_one_sibling_is_accepted_with_one_minus_the_total_variation(target: list[float], draft: list[float]) -> None:
    """Leviathan et al. 2023, theorem 3.5: the sum of min(target, draft)."""
    shared = sum(map(min, target, draft))
    for name in ("rejection", "recursive", "recursive_with_replacement"):
        assert acceptance(name, Draw.ONLY, 1, target, draft) == pytest.approx(shared)


@settings(max_examples=20, deadline=None)
@given(laws, laws)
def test_points_are_accepted_with_their_targets_mass(target: list[float], draft: list[float]) -> None:
    for name in ("rejection", "recursive", "recursive_with_replacement", "coupled"):
        once = acceptance(name, Draw.POINT, 1, target, [1.0, 0.0, 0.0, 0.0])
        assert once == pytest.approx(target[0])


@settings(max_examples=20, deadline=None)
@given(laws, laws)
def test_as_many_siblings_apart_as_there_are_tokens_are_accepted_for_certain(
    target: list[float], draft: list[float]
) -> None:
    assert acceptance("recursive", Draw.WITHOUT_REPLACEMENT, 4, target, draft) == pytest.approx(1.0)
