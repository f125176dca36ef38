"""The native linear layer: every storage against float64, and the same bits for a row in any company."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from lope.models.coded_weight import CodedWeight, decoded, stacked
from lope.models.lean.kernels import NativeKernels
from lope.models.lean.native.library import Library, library, why_not
from lope.models.lean.native.native_linear import NativeLinear

ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 31, 32, 33, 64, 65, 130)
GENERATOR = torch.Generator().manual_seed(0)


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=GENERATOR)


def codes(low: int, high: int, outputs: int, inputs: int) -> Tensor:
    return torch.randint(low, high, (outputs, inputs), generator=GENERATOR)


def four_bits(outputs: int, inputs: int) -> CodedWeight:
    scales, minima = (normal(outputs, inputs // 32).half() for _ in range(2))
    return CodedWeight(codes(0, 16, outputs, inputs).to(torch.uint8), scales, minima)


def eight_bits(outputs: int, inputs: int) -> CodedWeight:
    return CodedWeight(codes(-128, 128, outputs, inputs).to(torch.int8), normal(outputs, inputs // 32).half())


def wide_four_bits(outputs: int, inputs: int) -> CodedWeight:
    return CodedWeight(
        codes(0, 16, outputs, inputs).to(torch.uint8), normal(outputs, inputs // 32), normal(outputs, inputs // 32)
    )


def fine_eight_bits(outputs: int, inputs: int) -> CodedWeight:
    return CodedWeight(codes(-32, 32, outputs, inputs).to(torch.int8), normal(outputs, inputs // 16))


def eight_bits_by_row(outputs: int, inputs: int) -> CodedWeight:
    return CodedWeight(codes(-127, 128, outputs, inputs).to(torch.int8), normal(outputs, 1))


STORED: dict[str, Callable[[int, int], Tensor | CodedWeight]] = {
    "float32": lambda outputs, inputs: normal(outputs, inputs),
    "bfloat16": lambda outputs, inputs: normal(outputs, inputs).bfloat16(),
    "float16": lambda outputs, inputs: normal(outputs, inputs).half(),
    "four bits": four_bits,
    "eight bits": eight_bits,
    "four bits, wide scales": wide_four_bits,
    "eight bits, fine groups": fine_eight_bits,
    "eight bits by row": eight_bits_by_row,
}
SIZES = [(16, 32), (50, 64), (1, 32), (33, 288), (200, 1536), (7, 608)]
ODD_SIZES = [(3, 1), (17, 31), (40, 257)]
CASES = [(kind, size) for kind in STORED for size in SIZES] + [
    (kind, size) for kind in ("float32", "bfloat16", "float16", "eight bits by row") for size in ODD_SIZES
]


@pytest.fixture
def built() -> Library:
    found = library()
    if found is None:
        pytest.skip(f"no native kernels here: {why_not()}")
    return found


def within_rounding(found: Tensor, x: Tensor, weight: Tensor, *beside: Tensor) -> bool:
    """A sum of n + 2 float32 numbers is off by at most n + 2 roundings of the sum of their sizes."""
    expected, sizes = x.double() @ weight.double().T, x.double().abs() @ weight.double().abs().T
    for added in beside:
        expected, sizes = expected + added.double(), sizes + added.double().abs()
    return bool(((found.double() - expected).abs() <= (x.shape[1] + 3) * 2.0**-24 * sizes).all())


@pytest.mark.parametrize(("kind", "size"), CASES, ids=str)
def test_products_are_those_of_the_decoded_weight(kind: str, size: tuple[int, int], built: Library) -> None:
    weight, bias, x = STORED[kind](*size), 50 * normal(size[0]), normal(ROWS[-1], size[1])
    residual, numbers = 50 * normal(ROWS[-1], size[0]), decoded(weight)
    assert within_rounding(NativeLinear(built, weight, None)(x), x, numbers)
    added = NativeLinear(built, weight, bias)(x, residual)
    assert within_rounding(added, x, numbers, bias, residual)
    assert not within_rounding(added, x, numbers, bias), "a residual that is forgotten shows"
    assert not within_rounding(added, x, numbers, residual), "and a bias"


def test_rows_of_one_group_keep_their_minima(built: Library) -> None:
    whole = codes(-128, 128, 50, 32).to(torch.int8)
    weight, x = CodedWeight(whole, normal(50, 1), normal(50, 1)), normal(3, 32)
    assert within_rounding(NativeLinear(built, weight, None)(x), x, weight.decoded())


@pytest.mark.parametrize(("kind", "size"), CASES, ids=str)
def test_a_row_has_its_bits_in_any_company(
    kind: str, size: tuple[int, int], built: Library, set_threads: Callable[[int], None]
) -> None:
    linear = NativeLinear(built, STORED[kind](*size), normal(size[0]))
    x, residual = normal(ROWS[-1], size[1]), normal(ROWS[-1], size[0])
    whole = linear(x, residual)
    for threads in (1, 2, 3):
        set_threads(threads)
        for rows in ROWS:
            assert torch.equal(linear(x[-rows:], residual[-rows:]), whole[-rows:]), (threads, rows)


def test_a_planted_order_of_sums_shows(built: Library) -> None:
    """What the check above would miss if bits did not depend on the order in which inputs are added."""
    x, weight = normal(40, 256), normal(50, 256)
    order = torch.randperm(256, generator=GENERATOR)
    linear, shuffled = NativeLinear(built, weight, None), NativeLinear(built, weight[:, order], None)
    assert not torch.equal(linear(x), shuffled(x[:, order]))


def test_no_rows_and_rows_that_are_not_contiguous(built: Library) -> None:
    linear = NativeLinear(built, normal(20, 64), None)
    assert linear(normal(0, 64)).shape == (0, 20)
    x = normal(64, 9)
    assert torch.equal(linear(x.T), linear(x.T.contiguous()))
    with pytest.raises(AssertionError, match="as wide as the weight"):
        linear(normal(2, 63))


@pytest.mark.parametrize("size", [(1, 8), (3, 576), (2, 7), (0, 64)])
def test_norms_are_those_of_torch(size: tuple[int, int], built: Library) -> None:
    x, weight = normal(*size), normal(size[1])
    found = NativeKernels(built).norm(x, weight, 1e-5)
    assert found.shape == x.shape
    expected = torch.nn.functional.rms_norm(x.double(), size[1:], weight.double(), 1e-5)
    torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=1e-6)
    assert size[0] == 0 or not torch.allclose(found.double(), expected * (1 + 1e-4), rtol=1e-6, atol=1e-6)
    with pytest.raises(AssertionError, match="a weight for each column"):
        NativeKernels(built).norm(x, weight[1:], 1e-5)


def test_stacking_keeps_codes_where_all_have_them() -> None:
    one, two = four_bits(6, 64), four_bits(3, 64)
    both = stacked([one, two])
    assert isinstance(both, CodedWeight)
    assert torch.equal(both.decoded(), torch.cat([one.decoded(), two.decoded()]))
    mixed = stacked([one, eight_bits(3, 64)])
    assert isinstance(mixed, Tensor)
    assert mixed.shape == (9, 64)
    assert stacked([one]) is one
