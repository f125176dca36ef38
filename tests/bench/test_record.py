"""Rows: what follows from steps, and that they survive JSON."""

import json
import random

import numpy as np
import pytest
from tests.bench.documents import made_row

from lope.bench.record import Row, Turn
from lope.bench.suite import Suite

_ROW = Row(
    id="a",
    category="writing",
    group="mt_bench",
    system="ngram",
    turns=(
        Turn(9, (1, 2, 3, 4), ((1, 0.5), (1, 0.1), (2, 0.3)), 2, 5, 1, (2, 1), (1, 0)),
        Turn(20, (5, 6, 7), ((2, 0.25), (1, 0.2)), 1, 0, 0),
    ),
    peak_memory_bytes=5,
)


def test_the_figures_of_a_conversation_are_sums_over_its_turns() -> None:
    assert _ROW.tokens == (1, 2, 3, 4, 5, 6, 7)
    assert _ROW.seconds == pytest.approx(1.35)
    assert (_ROW.decode_tokens, _ROW.passes, _ROW.drafted, _ROW.accepted) == (4, 3, 5, 1)
    assert _ROW.decode_seconds == pytest.approx(0.6)
    assert _ROW.rate == pytest.approx(4 / 0.6)
    assert _ROW.rate_with_prompt == pytest.approx(7 / 1.35)
    assert _ROW.tokens_per_pass == pytest.approx(4 / 3)
    assert _ROW.time_to_first_token == 0.5


@pytest.mark.parametrize("percentile", [50, 95])
def test_the_time_of_a_token_is_its_steps_shared_time(percentile: float) -> None:
    times = [0.1, 0.15, 0.15, 0.2]
    assert _ROW.time_per_token(percentile) == pytest.approx(np.percentile(times, percentile))


def test_a_row_survives_json_and_its_written_figures_follow_from_its_steps() -> None:
    for system in ("plain", "ngram"):
        for item in Suite.mini().items[:5]:
            row = made_row(item, system, random.Random(item.id))
            written = json.loads(json.dumps(row.to_json()))
            again = Row.from_json(written)
            assert again.to_json() == written
            assert written["figures"]["num_tokens"] == len(row.tokens)
            assert again == row


def test_an_answer_of_one_token_has_no_rate() -> None:
    row = Row("a", "qa", "qa", "plain", (Turn(3, (1,), ((1, 0.2),), 0),))
    assert row.rate is None
    assert row.time_per_token(50) is None
    assert row.tokens_per_pass == 1.0
