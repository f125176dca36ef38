"""A trimmed head: removed tokens are impossible, and a request whose masks allow only such is drafted nothing."""

from typing import Any

import pytest
import torch

from lope.core.budget import Budget
from lope.core.chance import KeyedChance
from lope.core.draft import EMPTY, ROOT, Draft
from lope.core.errors import SettingError
from lope.core.prompt import Prompt
from lope.core.protocols import Ask, Step
from lope.core.rows import Rows
from lope.core.sampling import Sampling
from lope.drafters.autoregressive import AutoregressiveDrafter
from lope.drafters.vocabulary import RespelledDraftModel, Trimmed
from lope.models.table_draft import TableDraftModel
from lope.shapes import SHAPES
from lope.stops.never import NeverStop

KEPT = torch.tensor([1, 4, 5, 8])
SIZE = 9


class Narrow(TableDraftModel):
    """Rows of one column for each kept token; tokens outside of the table's own are folded into it."""

    def step(self, steps: Any) -> Any:
        contexts = [
            [tuple(token % 4 for token in (*step.session.ids, *step.tree.words(node))) for node in step.frontier]
            for step in steps
        ]
        return [(Rows(self.table.after(level).float(), None, 4, float("-inf")), None) for level in contexts]


MODEL = RespelledDraftModel(Narrow(4), Trimmed(KEPT, SIZE))


def drafted(sampling: Sampling, shape: str = "rsd_s:width=3,depth=3", prompts: Any = ((0, 1),)) -> list[Draft]:
    drafter: Any = AutoregressiveDrafter(MODEL, SHAPES.make(shape), NeverStop())
    asks = [
        Ask(drafter.open(Prompt(ids), None), Budget(9, 3), sampling.begin(Prompt(ids)), KeyedChance(0, 0, len(ids)))
        for ids in prompts
    ]
    return drafter.propose(asks)  # type: ignore[no-any-return]


def test_rows_are_over_the_whole_vocabulary_and_removed_tokens_impossible() -> None:
    session = MODEL.open(Prompt((0, 1)), None)
    [(rows, _)] = MODEL.step([Step(session, EMPTY, (ROOT,))])
    assert (rows.size, rows.rest) == (SIZE, float("-inf"))
    removed = [token for token in range(SIZE) if token not in KEPT.tolist()]
    law = rows.probabilities().dense(0)
    assert law.shape == (SIZE,)
    assert not law[removed].any()
    assert law[KEPT].sum().item() == pytest.approx(1.0)
    [(inner, _)] = MODEL.model.step([Step(session, EMPTY, (ROOT,))])
    torch.testing.assert_close(rows.dense(0)[KEPT], inner.values[0])


def test_a_head_that_keeps_all_is_a_whole_head() -> None:
    whole = RespelledDraftModel(Narrow(4), Trimmed(torch.arange(4), 4))
    [(rows, _)] = whole.step([Step(whole.open(Prompt((0, 1)), None), EMPTY, (ROOT,))])
    assert rows.ids is None


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_every_shape_drafts_kept_tokens_by_laws_over_all(shape: str, temperature: float) -> None:
    sampling = Sampling(temperature=temperature, top_p=0.95, repetition_penalty=1.2, logit_bias={0: 9.0, 4: 0.5})
    for draft in drafted(sampling, shape, ((0, 1), (3, 7, 8))):
        assert len(draft) > 1
        assert set(draft.tokens) <= set(KEPT.tolist())
        assert draft.laws is None or draft.laws.size == SIZE


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_where_masks_leave_only_removed_tokens_nothing_is_drafted(temperature: float) -> None:
    assert [len(draft) for draft in drafted(Sampling(temperature=temperature, allowed_tokens=(0, 2)))] == [0]
    [draft] = drafted(Sampling(temperature=temperature, allowed_tokens=(0, 2, 8)))
    assert set(draft.tokens) == {8}


def test_where_they_leave_none_below_some_node_the_draft_ends_there() -> None:
    """Allows kept tokens once, then only removed ones."""

    class Once:
        def begin(self, prompt: Prompt) -> "Once":
            return self

        def advance(self, token: int) -> Any:
            return Sampling(allowed_tokens=(0,)).chain(frozenset())[0].begin(Prompt(()))

        def apply(self, values: torch.Tensor, ids: Any) -> torch.Tensor:
            return values

    [draft] = drafted(Sampling(temperature=1.0, processors=(Once(),)))
    assert draft.depths == (1, 1, 1)
    assert draft.laws is not None


def test_a_processor_that_breaks_its_promise_is_still_an_error() -> None:
    class Wrong:
        def begin(self, prompt: Prompt) -> "Wrong":
            return self

        def advance(self, token: int) -> "Wrong":
            return self

        def apply(self, values: torch.Tensor, ids: Any) -> torch.Tensor:
            return values * float("nan")

    with pytest.raises(SettingError, match="made a logit nan"):
        drafted(Sampling(temperature=1.0, processors=(Wrong(),)))
