"""How much probability is not kept, and the smallest k that leaves out little enough."""

import pytest
import torch

from lope.training.outside_mass import OutsideMass


def _rows(*laws: list[float]) -> torch.Tensor:
    return torch.tensor(laws).log()


def test_means_are_over_all_rows_that_were_noted() -> None:
    outside = OutsideMass((1, 2, 3))
    outside.note(_rows([0.5, 0.3, 0.2]))
    outside.note(_rows([0.6, 0.3, 0.05], [0.9, 0.05, 0.05]))
    assert outside.count == 3
    assert outside.mean(1) == pytest.approx((0.5 + 0.4 + 0.1) / 3, abs=1e-6)
    assert outside.mean(2) == pytest.approx((0.2 + 0.1 + 0.05) / 3, abs=1e-6)
    assert outside.mean(3) == pytest.approx((0.0 + 0.05 + 0.0) / 3, abs=1e-6)


@pytest.mark.parametrize(("outside", "chosen"), [(0.0, 8), (0.019, 8), (0.021, 16), (0.5, 128)])
def test_the_smallest_that_leaves_out_less_than_two_percent(outside: float, chosen: int) -> None:
    """The first eight tokens share 1 - outside; the rest lies on the next eight, or is spread over 1,000 tokens."""
    law = torch.full((1000,), 0.0)
    law[:8] = (1.0 - outside) / 8
    law[8:16] = outside / 8
    if chosen == 128:
        law[8:] = outside / 992
    found = OutsideMass.choosing(1000)
    found.note(law.clamp_min(1e-30).log()[None, :128])
    assert found.choice() == chosen


def test_a_small_vocabulary_is_kept_whole_if_it_must_be() -> None:
    assert OutsideMass.choosing(20).sizes == (8, 16)
    assert OutsideMass.choosing(6).sizes == (6,)
    assert OutsideMass.choosing(1 << 17).sizes[-1] == 128
