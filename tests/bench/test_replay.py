"""Measured tokens per pass of n-gram drafts against a replay of the same text by another implementation."""

from collections.abc import Callable

import pytest
from benchmarks.speed.replay import followed, passes, replay

from lope.bench.ours import OurSystem
from lope.bench.record import Row
from lope.bench.suite import Item
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.models.loaded import LoadedModel


@pytest.mark.parametrize("text", ["the cat sat on the mat", "and the dog and the dog"])
def test_a_fixed_budget_makes_the_passes_of_a_replay(tiny_model: Callable[..., LoadedModel], text: str) -> None:
    engine = Engine(tiny_model(), Parts(drafter="ngram"), exact=False)
    item = Item("a", "writing", (text, "the mat?"))
    row = Row("a", "writing", "mt_bench", "ngram", OurSystem("ngram", engine).answer(item, 60))
    assert replay(engine, item, row) == (row.decode_tokens, row.passes)
    assert row.passes is not None
    assert row.passes < row.decode_tokens, "something was accepted, or nothing was compared"


def test_the_replay_itself_on_texts_counted_by_hand() -> None:
    assert followed([1, 2, 3, 1, 2]) == [3, 1, 2, 3, 1, 2, 3, 1, 2, 3]
    assert followed([1, 2, 3]) == []
    # 7 comes from the prompt's pass; then [8, 7, 8, 7] + 8: four drafted, one more; then what is left by itself
    assert passes([7, 8], [7, 8, 7, 8, 7, 8], 1) == 1
    assert passes([1], [2, 3, 4], 1) == 2
