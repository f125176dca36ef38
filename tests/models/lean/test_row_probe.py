"""The probe finds kernels that treat a single row, or a row's place, in a way of their own."""

import pytest
import torch
from torch import Tensor

from lope.models.lean.linear import BlockedLinear, DenseLinear, PackedLinear
from lope.models.lean.row_probe import RowProbe

WEIGHT = torch.randn(24, 16, generator=torch.Generator().manual_seed(1))


class Planted(PackedLinear):
    """Exact in integers, but for what is planted."""

    def __init__(self, fault: str) -> None:
        super().__init__(WEIGHT.round(), None)
        self._fault = fault

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        out = torch.stack([(WEIGHT.round().double() @ row.double()).float() for row in x])
        if self._fault == "single" and len(x) == 1:
            out += 1e-3
        if self._fault == "place":
            out[5:] += 1e-3
        if self._fault == "count" and len(x) == 17:
            out += 1e-3
        return out if residual is None else out + residual


@pytest.mark.parametrize(("fault", "fewest"), [("none", 1), ("single", 2), ("place", None), ("count", None)])
def test_what_is_planted_is_found(fault: str, fewest: int | None) -> None:
    probe, linear = RowProbe(), Planted(fault)
    assert probe.fewest(linear) == fewest
    assert probe.all_invariant([linear]) == (fewest is not None)


def test_a_single_row_runs_in_company_and_has_the_same_bits() -> None:
    blocked = RowProbe().blocked(Planted("single"))
    x = torch.randn(40, 16, generator=torch.Generator().manual_seed(2))
    beside = torch.randn(40, 24, generator=torch.Generator().manual_seed(3))
    whole = blocked(x, beside)
    for row in range(40):
        assert torch.equal(blocked(x[row : row + 1], beside[row : row + 1]), whole[row : row + 1])
    assert torch.equal(blocked(x[:33]), blocked(x)[:33]), "the last block has one row"


def test_plain_tensors_promise_nothing() -> None:
    assert RowProbe().fewest(DenseLinear(WEIGHT, None)) is None
    assert RowProbe().all_invariant([]), "nothing to promise"
    assert BlockedLinear(DenseLinear(WEIGHT, None))(torch.ones(1, 16)).shape == (1, 24)
