"""The lean decoder as drafter: what survives a commit is what this model ran itself, and of the last tree only."""

import torch
from tests.models.lean.random_decoder import backend, words

from lope.core.draft import EMPTY, ROOT, Draft, chain
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Step
from lope.core.rows import Rows
from lope.core.scores import Scores
from lope.core.verdict import Verdict
from lope.models.lean.draft_model import LeanDraftModel, LeanDraftSession

BACKEND = backend()
SCORES = Scores(Rows(torch.zeros(1, 1), None, 1, float("-inf")), 1)


def grown(model: LeanDraftModel, session: LeanDraftSession, tree: Draft) -> None:
    """Run the root, then the tree level by level, as a shape would."""
    model.step([Step(session, EMPTY, (ROOT,))])
    for depth in range(1, max(tree.depths, default=0) + 1):
        level = tuple(node for node in range(len(tree)) if tree.depths[node] == depth)
        model.step([Step(session, tree, level)])


def after(model: LeanDraftModel, session: LeanDraftSession) -> torch.Tensor:
    rows, _ = model.step([Step(session, EMPTY, (ROOT,))])[0]
    return rows.values


def fresh(model: LeanDraftModel, text: Path) -> torch.Tensor:
    return after(model, model.open(Prompt(text), None))  # type: ignore[arg-type]


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool((one - other).abs().max() < 2e-4)


def test_a_tree_that_was_never_committed_leaves_nothing_behind() -> None:
    model = BACKEND.draft_model()
    text = words(20, 1)
    session = model.open(Prompt(text), None)  # type: ignore[arg-type]
    grown(model, session, chain((5, 6, 7)))
    grown(model, session, chain((8, 9)))
    session.commit(chain((8, 9)), SCORES, Verdict((), (5, 6, 3)))
    assert close(after(model, session), fresh(model, (*text, 5, 6, 3)))


def test_the_rows_of_a_stale_tree_would_have_shown() -> None:
    model = BACKEND.draft_model()
    text = words(20, 1)
    session = model.open(Prompt(text), None)  # type: ignore[arg-type]
    grown(model, session, chain((5, 6, 7)))
    stale = dict(session.below), dict(session.slots)
    grown(model, session, chain((8, 9)))
    session.below |= stale[0]
    session.slots |= {node: slot for node, slot in stale[1].items() if node != ROOT}
    session.commit(chain((8, 9)), SCORES, Verdict((), (5, 6, 3)))
    assert not close(after(model, session), fresh(model, (*text, 5, 6, 3)))


def test_hidden_states_are_those_after_the_final_norm() -> None:
    """The head applied to them gives the logits."""
    model = BACKEND.draft_model()
    rows, hidden = model.step([Step(model.open(Prompt(words(9, 2)), None), EMPTY, (ROOT,))])[0]  # type: ignore[arg-type]
    assert hidden is not None
    torch.testing.assert_close(BACKEND._weights.head(hidden).float(), rows.values)
