"""A model whose context is shorter than the text: it never sees more than fits, and re-opening changes nothing."""

from typing import Any

import pytest
import torch

from lope.core.budget import Budget
from lope.core.chance import KeyedChance
from lope.core.draft import EMPTY
from lope.core.prompt import Prompt, Span
from lope.core.protocols import Ask
from lope.core.sampling import Sampling
from lope.core.verdict import Verdict
from lope.drafters.autoregressive import AutoregressiveDrafter
from lope.drafters.window import WindowedDraftModel, draft_room, window_start
from lope.models.table_draft import TableDraftModel, TableDraftSession
from lope.shapes.rsd_s import RsdSShape
from lope.stops.never import NeverStop


class Narrow(TableDraftModel):
    """A table that refuses more than 16 items, as a model with a short context does."""

    opened = 0

    def open(self, prompt: Prompt, beside: object) -> TableDraftSession:
        Narrow.opened += 1
        assert not prompt.spans
        return super().open(prompt, beside)

    def step(self, steps: Any) -> Any:
        for step in steps:
            assert 0 < len(step.session.ids) + len(step.tree) <= 16, "more than the context holds"
        return super().step(steps)


def narrow_drafter(context: int = 16) -> AutoregressiveDrafter[Any, Any]:
    model = WindowedDraftModel(Narrow(), context)
    return AutoregressiveDrafter(model, RsdSShape(2, 2), NeverStop(), max_nodes=draft_room(context))


def propose(drafter: Any, session: Any, length: int) -> Any:
    ask = Ask(
        session, Budget(99, 99), Sampling(temperature=1.0).begin(Prompt((0,) * length)), KeyedChance(3, 0, length)
    )
    return drafter.propose([ask])[0]


@pytest.mark.parametrize("context", [4, 5, 16, 64, 2048])
def test_window_fits_and_moves_in_steps(context):
    room = draft_room(context)
    starts = [window_start(length, context) for length in range(5 * context)]
    assert starts == sorted(starts)
    for length, start in enumerate(starts):
        assert length - start <= context - room
        assert start % room == 0
        if start:
            assert length - start > context - 2 * room
    assert len(set(starts)) <= 5 * context / room


def test_a_text_far_longer_than_the_context_is_drafted():
    drafter = narrow_drafter()
    session, length = drafter.open(Prompt((0, 1, 2)), None), 3
    Narrow.opened = 0
    for number in range(60):
        draft = propose(drafter, session, length)
        assert len(draft) == 4
        session.commit(draft, None, Verdict((), (number % 4, 1)))
        length += 2
    assert Narrow.opened <= 123 / 4 + 1, "read anew once every context / 4 tokens"


def test_a_prompt_longer_than_the_context_is_cut_to_its_end():
    drafter = narrow_drafter()
    prompt = tuple(number % 4 for number in range(101))
    assert len(propose(drafter, drafter.open(Prompt(prompt), None), 101)) == 4


def test_pictures_are_not_read():
    """The words around a picture stand side by side, as if it were not there."""
    drafter = narrow_drafter()
    with_picture = drafter.open(Prompt((0, 1, 9, 9, 2), (Span(2, 4, torch.zeros(2, 3)),)), None)
    without = drafter.open(Prompt((0, 1, 2)), None)
    assert propose(drafter, with_picture, 3).tokens == propose(drafter, without, 3).tokens


def test_a_fork_opens_its_own_window():
    drafter = narrow_drafter()
    session = drafter.open(Prompt((0, 1, 2)), None)
    before = propose(drafter, session, 3)
    copy = drafter.fork(session, None)
    copy.commit(EMPTY, None, Verdict((), (3,) * 40))
    propose(drafter, copy, 43)
    assert propose(drafter, session, 3).tokens == before.tokens
