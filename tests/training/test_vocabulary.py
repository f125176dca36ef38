"""VocabTrim: which tokens stay, and the bounds that its paper's rule obeys."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lope.core.errors import SettingError, UsageError
from lope.training.vocabulary import coverage, kept_tokens

COUNTS = torch.tensor([5, 0, 9, 1, 1, 7])


def test_the_most_frequent_stay_in_ascending_order_and_ties_go_to_the_lower_id() -> None:
    assert kept_tokens(COUNTS, 3, frozenset()).tolist() == [0, 2, 5]
    assert kept_tokens(COUNTS, 4, frozenset()).tolist() == [0, 2, 3, 5]
    assert coverage(COUNTS, kept_tokens(COUNTS, 3, frozenset())) == pytest.approx(21 / 23)


def test_tokens_that_end_a_turn_stay_whatever_their_count() -> None:
    assert 1 in kept_tokens(COUNTS, 2, frozenset({1})).tolist()


def test_sizes_that_cannot_be_are_one_clear_line() -> None:
    with pytest.raises(SettingError, match="6 tokens, not 7"):
        kept_tokens(COUNTS, 7, frozenset())
    with pytest.raises(SettingError, match="cannot be trimmed to 1"):
        kept_tokens(COUNTS, 1, frozenset({0, 1}))
    with pytest.raises(UsageError, match="nothing was counted"):
        kept_tokens(torch.zeros(4, dtype=torch.int64), 2, frozenset())


laws = st.lists(st.floats(0.01, 1.0), min_size=6, max_size=6)


@given(laws, laws, st.sets(st.integers(0, 5), min_size=1))
def test_the_bounds_on_acceptance(target: list[float], draft: list[float], kept: set[int]) -> None:
    """alpha' <= q(V_trim) and alpha' >= alpha - sum over removed of min(p, q): p' is p on V_trim, renormalised."""
    q, p = (torch.tensor(law, dtype=torch.float64) / sum(law) for law in (target, draft))
    inside = torch.zeros(6, dtype=torch.bool)
    inside[list(kept)] = True
    trimmed = torch.where(inside, p, 0.0) / p[inside].sum()
    whole, after = torch.minimum(p, q).sum(), torch.minimum(trimmed, q).sum()
    removed = torch.minimum(p, q)[~inside].sum()
    assert after <= q[inside].sum() + 1e-12
    assert after >= whole - removed - 1e-12
    assert whole - removed >= whole - q[~inside].sum() - 1e-12
