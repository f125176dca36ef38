import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lope.core.statistics import chi_square, holm


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 200), st.integers(40, 400)), min_size=2, max_size=30))
def test_the_statistic_and_the_p_value_are_scipys(cells: list[tuple[int, int]]) -> None:
    observed = torch.tensor([count for count, _ in cells], dtype=torch.float64)
    law = torch.tensor([weight for _, weight in cells], dtype=torch.float64)
    expected = law * observed.sum() / law.sum()
    if float(expected.min()) < 5.0:
        return
    statistic, p_value = chi_square(observed, law)
    theirs = stats.chisquare(observed.numpy(), expected.numpy())
    assert statistic == pytest.approx(theirs.statistic, rel=1e-9, abs=1e-9)
    assert p_value == pytest.approx(theirs.pvalue, rel=1e-7, abs=1e-12)


def test_small_cells_are_pooled() -> None:
    observed = torch.tensor([[50, 44], [3, 3]])
    law = torch.tensor([[0.5, 0.44], [0.04, 0.02]])
    theirs = stats.chisquare([50, 44, 6], [50, 44, 6])
    assert chi_square(observed, law) == (pytest.approx(theirs.statistic), pytest.approx(theirs.pvalue))
    statistic, _ = chi_square(torch.tensor([95, 3, 2]), torch.tensor([0.97, 0.02, 0.01]))
    assert statistic == pytest.approx(0.0, abs=1e-12), "what stays below 5 takes in the next cell"


def test_what_cannot_happen_decides() -> None:
    assert chi_square(torch.tensor([99, 1]), torch.tensor([1.0, 0.0])) == (float("inf"), 0.0)
    assert chi_square(torch.tensor([100, 0]), torch.tensor([1.0, 0.0])) == (0.0, 1.0)


def test_true_hypotheses_have_uniform_p_values() -> None:
    generator = torch.Generator().manual_seed(0)
    law = torch.softmax(torch.randn(12, generator=generator), -1)
    p_values = []
    for _ in range(300):
        drawn = torch.multinomial(law, 500, replacement=True, generator=generator)
        p_values.append(chi_square(torch.bincount(drawn, minlength=12), law)[1])
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


def test_holm_against_a_worked_example() -> None:
    """Holm 1979: 0.01, 0.04, 0.03, 0.005 at 0.05 reject the two smallest (0.005 <= 0.05/4, 0.01 <= 0.05/3)."""
    assert holm([0.01, 0.04, 0.03, 0.005], 0.05) == [True, False, False, True]
    assert holm([], 0.05) == []
    assert holm([0.05], 0.05) == [True]
    assert holm([0.026, 0.049], 0.05) == [False, False], "the first that fails shields all larger ones"
