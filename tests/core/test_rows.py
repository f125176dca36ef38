import pytest
import torch

from lope.core.rows import Rows

INF = float("-inf")
VALUES = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.mark.parametrize(
    ("ids", "dense"),
    [
        (torch.tensor([2, 0]), [[2.0, INF, 1.0], [4.0, INF, 3.0], [6.0, INF, 5.0]]),
        (torch.tensor([[2, 0], [0, 1], [1, 2]]), [[2.0, INF, 1.0], [3.0, 4.0, INF], [INF, 5.0, 6.0]]),
    ],
)
def test_columns_not_held_have_the_rest(ids: torch.Tensor, dense: list[list[float]]) -> None:
    rows = Rows(VALUES, ids, 3, INF)
    assert [rows.dense(row).tolist() for row in range(3)] == dense
    some = rows.select([2, 0])
    assert [some.dense(row).tolist() for row in range(2)] == [dense[2], dense[0]]
    assert rows.select([1]).dense(0).tolist() == dense[1]
    assert len(rows.select([])) == 0
    for row in range(3):
        assert rows.tokens(row, torch.tensor([1])).item() == rows.held(row)[1]


def test_a_dense_row_is_itself() -> None:
    rows = Rows(VALUES, None, 2, INF)
    assert rows.dense(1).tolist() == [3.0, 4.0]
    assert rows.held(0).tolist() == [0, 1]
    assert rows.tokens(0, torch.tensor([1])).tolist() == [1]


def test_probabilities_of_whole_rows() -> None:
    whole = torch.randn(4, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = torch.softmax(whole, -1)
    rows = Rows(whole, None, 50, INF)
    assert torch.allclose(rows.probabilities().values, expected)
    top = torch.topk(whole, 5)
    part = Rows(top.values, top.indices, 50, INF, torch.logsumexp(whole, -1)).select([3, 1])
    assert torch.allclose(part.probabilities().values, expected.gather(-1, top.indices)[[3, 1]])
    assert part.probabilities().probabilities().rest == 0.0
