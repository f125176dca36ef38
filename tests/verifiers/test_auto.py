import pytest

from lope.core.draft import Draw
from lope.core.errors import UsageError
from lope.verifiers import VERIFIERS
from lope.verifiers.auto import check_pair, choose

ONLY, FREE, APART, POINT = Draw.ONLY, Draw.INDEPENDENT, Draw.WITHOUT_REPLACEMENT, Draw.POINT


@pytest.mark.parametrize(
    ("greedy", "draws", "name"),
    [
        (True, {POINT}, "greedy"),
        (True, set(Draw), "greedy"),
        (False, set(), "coupled"),
        (False, {POINT}, "coupled"),
        (False, {ONLY}, "rejection"),
        (False, {POINT, ONLY}, "rejection"),
        (False, {APART}, "recursive"),
        (False, {APART, ONLY, POINT}, "recursive"),
        (False, {FREE}, "recursive_with_replacement"),
        (False, {FREE, POINT}, "recursive_with_replacement"),
    ],
)
def test_auto_takes_the_rule_that_fits(greedy: bool, draws: set[Draw], name: str) -> None:
    assert choose(greedy, draws) == VERIFIERS.make(name)


def test_auto_refuses_a_mixture_that_only_coupled_verifies() -> None:
    with pytest.raises(UsageError, match=r"without_replacement nodes .*; coupled can$"):
        choose(False, {FREE, APART})


@pytest.mark.parametrize(
    ("name", "draws", "greedy", "words"),
    [
        ("greedy", {POINT}, False, r"greedy cannot verify a temperature above 0 .*coupled or rejection"),
        (
            "rejection",
            {APART},
            False,
            r"with without_replacement nodes .*coupled or recursive can",
        ),
        ("recursive", {FREE, POINT}, False, r"with independent nodes .*; coupled or recursive_with_replacement can"),
        ("recursive_with_replacement", {APART}, False, r"verifies independent, only, point.*coupled or recursive can"),
    ],
)
def test_an_inexact_pair_is_refused_with_what_can(name: str, draws: set[Draw], greedy: bool, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_pair(VERIFIERS.make(name), draws, greedy)


@pytest.mark.parametrize("name", list(VERIFIERS))
@pytest.mark.parametrize("greedy", [True, False])
def test_what_a_verifier_accepts_is_a_pair(name: str, greedy: bool) -> None:
    verifier = VERIFIERS.make(name)
    draws = verifier.accepts(greedy)
    if draws is not None:
        check_pair(verifier, draws, greedy)
    assert verifier.lossless
