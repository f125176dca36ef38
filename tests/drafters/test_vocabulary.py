"""Rows of a padded vocabulary become rows over the target's."""

import torch

from lope.core.draft import EMPTY
from lope.core.prompt import Prompt
from lope.core.protocols import Step
from lope.core.rows import Rows
from lope.drafters.vocabulary import Fitted, RespelledDraftModel
from lope.models.table_draft import TableDraftModel


class Trimmed(TableDraftModel):
    """Holds the columns 1, 3 and 4 of its six."""

    def step(self, steps):
        kept = torch.tensor([1, 3, 4])
        return [(Rows(rows.values[:, kept], kept, 6, rows.rest), None) for rows, _ in super().step(steps)]


def row(model, size: int) -> Rows:
    fitted = RespelledDraftModel(model, Fitted(size))
    session = fitted.open(Prompt((0, 1)), None)
    [(rows, hidden)] = fitted.step([Step(session, EMPTY, (-1,))])
    assert hidden is None
    assert rows.size == size
    return rows


def test_columns_beyond_the_target_are_cut_off():
    full = TableDraftModel(6).table.after([(0, 1)])[0]
    assert torch.equal(row(TableDraftModel(6), 6).dense(0), full)
    assert torch.equal(row(TableDraftModel(6), 5).dense(0), full[:5])
    assert row(Trimmed(6), 4).held(0).tolist() == [1, 3]


def test_missing_columns_are_impossible():
    wide = row(TableDraftModel(6), 8)
    assert wide.dense(0)[6:].tolist() == [float("-inf")] * 2
    assert abs(wide.probabilities().dense(0).sum().item() - 1) < 1e-12
    assert wide.probabilities().dense(0)[6:].tolist() == [0.0, 0.0]
