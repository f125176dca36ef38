import pytest
import torch

from lope.core.draft import EMPTY, ROOT, chain
from lope.core.errors import SettingError, UsageError
from lope.core.prompt import Prompt, Span
from lope.core.protocols import Job, Step
from lope.core.scores import ALL, Needs
from lope.core.verdict import NOTHING, Verdict
from lope.models.table import TableModel
from lope.models.table_draft import TableDraftModel

TARGET = TableModel(vocabulary=6, seed=3)
FULL = Needs(logits=ALL)


def test_rows_depend_on_the_last_two_tokens() -> None:
    rows = TARGET.after([(), (4,), (1, 4), (0, 3, 1, 4)])
    assert torch.equal(rows[2], rows[3])
    assert len({tuple(row.tolist()) for row in rows}) == 3
    assert torch.equal(TableModel(vocabulary=6, seed=3).after([(1, 4)]), rows[2:3])
    assert not torch.equal(TableModel(vocabulary=6, seed=4).after([(1, 4)]), rows[2:3])


def test_a_pass_scores_the_root_and_every_node() -> None:
    session = TARGET.open(Prompt((5, 1)))
    draft = chain((4, 2))
    jobs = [Job(session, draft, FULL), Job(session.fork(), EMPTY, Needs(logits=2, context_logits=3))]
    whole, part = TARGET.score(jobs)
    assert torch.equal(whole.logits.values, TARGET.after([(5, 1), (1, 4), (4, 2)]))
    assert whole.context == part.context == 2
    assert whole.context_logits is None
    assert part.context_logits is not None
    assert part.context_logits.values.shape == (1, 3)
    assert part.context_logits.held(0)[0] == TARGET.after([(5,)])[0].argmax()
    held = part.logits.probabilities()
    assert torch.allclose(held.values[0], whole.logits.values[0].softmax(-1).topk(2).values)


def test_committing_is_reopening() -> None:
    session = TARGET.open(Prompt((5, 1)))
    draft = chain((4, 2, 2))
    session.commit(draft, Verdict((0, 1), (4, 2, 3)))
    again = TARGET.open(Prompt((5, 1, 4, 2, 3)))
    assert (session.ids, session.pending, again.pending) == (again.ids, 1, 5)
    assert session.room == again.room
    session.commit(EMPTY, NOTHING)
    session.extend(Prompt((0, 0)))
    assert (session.ids[-3:], session.pending) == ((3, 0, 0), 3)
    fork = session.fork()
    fork.commit(EMPTY, Verdict((), (1,)))
    assert session.ids[-1] == 0


def test_what_a_table_cannot_read_is_refused() -> None:
    small = TableModel(context=3)
    with pytest.raises(UsageError, match="ids from 0 to 3"):
        small.open(Prompt((4,)))
    with pytest.raises(UsageError, match="has room for 3"):
        small.open(Prompt((0, 0, 0, 0)))
    with pytest.raises(UsageError, match="tokens only"):
        small.open(Prompt((0, 0), (Span(0, 1, torch.zeros(1, 2)),)))
    with pytest.raises(UsageError, match="no layers"):
        small.score([Job(small.open(Prompt((0,))), EMPTY, Needs(layers=(1,)))])
    with pytest.raises(SettingError, match="vocabulary must be at least 4"):
        TableModel(vocabulary=3)


def test_a_draft_model_runs_the_frontier() -> None:
    model = TableDraftModel(vocabulary=6, seed=2)
    session = model.open(Prompt((5, 1)), None)
    tree = chain((4, 2))
    ((rows, hidden),) = model.step([Step(session, tree, (ROOT, 0, 1))])
    assert hidden is None
    assert torch.equal(rows.values, TableModel(6, 2).after([(5, 1), (1, 4), (4, 2)]))
    session.commit(tree, TARGET.score([Job(TARGET.open(Prompt((5, 1))), tree, FULL)])[0], Verdict((0,), (4, 3)))
    copy = model.fork(session, None)
    copy.extend(Prompt((0,)))
    assert (session.ids, copy.ids) == ((5, 1, 4, 3), (5, 1, 4, 3, 0))
