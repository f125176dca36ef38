"""Requests that are not ready get the empty draft; the others are drafted as if they were alone."""

from typing import Any

from lope.core.budget import Budget
from lope.core.chance import KeyedChance
from lope.core.prompt import Prompt
from lope.core.protocols import Ask
from lope.core.sampling import Sampling
from lope.drafters.around import AroundDrafter
from lope.drafters.autoregressive import AutoregressiveDrafter
from lope.drafters.waiting import when_ready
from lope.models.table_draft import TableDraftModel, TableDraftSession
from lope.shapes.rsd_s import RsdSShape
from lope.stops.never import NeverStop


class LateSession(TableDraftSession):
    """Ready once it holds three tokens."""

    @property
    def ready(self) -> bool:
        return len(self.ids) >= 3


class Late(TableDraftModel):
    def open(self, prompt: Prompt, beside: object) -> LateSession:
        return LateSession(prompt.text())


INNER: Any = AutoregressiveDrafter(Late(), RsdSShape(2, 2), NeverStop(), name="late")
DRAFTER: Any = AroundDrafter(INNER, when_ready)


def ask(ids: tuple[int, ...]) -> Ask[Any]:
    sampler = Sampling(temperature=1.0).begin(Prompt(ids))
    return Ask(DRAFTER.open(Prompt(ids), None), Budget(9, 9), sampler, KeyedChance(1, 0, len(ids)))


def test_mixed_batches() -> None:
    texts = [(0, 1), (0, 1, 2), (3,), (1, 1, 1, 2)]
    drafts = DRAFTER.propose([ask(text) for text in texts])
    assert [len(draft) for draft in drafts] == [0, 4, 0, 4]
    for text, draft in zip(texts, drafts, strict=True):
        if len(text) >= 3:
            [alone] = INNER.propose([ask(text)])
            assert (draft.tokens, draft.parents) == (alone.tokens, alone.parents)


def test_a_batch_of_which_none_is_ready_runs_no_model() -> None:
    assert [len(draft) for draft in DRAFTER.propose([ask((0,)), ask((1, 2))])] == [0, 0]


def test_all_else_is_the_drafters() -> None:
    assert (DRAFTER.needs, DRAFTER.sources) == (INNER.needs, ("late",))
    assert DRAFTER.draws(False) == INNER.draws(False)
