"""Packed rows hold every token once, each with the law that belongs to it."""

import pytest
import torch
from tests.training.lessons import VOCABULARY, sequence

from lope.core.errors import UsageError
from lope.training.batches import Batch, Batches

SEQUENCES = [sequence(number, 2 + number % 3, 3 + number % 5, features=True) for number in range(23)]


def _all(batches: Batches) -> list[Batch]:
    return [batches.at(0, number) for number in range(batches.per_epoch)]


def test_every_answer_token_stands_behind_its_own_law() -> None:
    for batch in _all(Batches(SEQUENCES, length=32, rows=2, seed=0, features=True)):
        rows, places = batch.answer.nonzero(as_tuple=True)
        assert len(rows)
        nexts = batch.tokens[rows, places + 1]
        assert torch.equal(batch.top_ids[rows, places, 0], nexts)
        assert torch.equal(batch.document[rows, places], batch.document[rows, places + 1])
        assert torch.equal(nexts, (batch.tokens[rows, places] + 1) % VOCABULARY)
        assert torch.isneginf(batch.top_logprobs[~batch.answer]).all()


def test_an_epoch_holds_each_sequence_once_and_hardly_any_padding() -> None:
    batches = Batches(SEQUENCES, length=32, rows=1, seed=1, features=False)
    answers = sum(int(batch.answer.sum()) for batch in _all(batches))
    used = sum(int((batch.document >= 0).sum()) for batch in _all(batches))
    assert answers == sum(len(s.top_ids) for s in SEQUENCES)
    assert used == sum(len(s.tokens) for s in SEQUENCES)
    assert used / (32 * batches.per_epoch) > 0.85


def test_the_same_number_is_the_same_batch_whoever_asks() -> None:
    first, second = (Batches(SEQUENCES, length=32, rows=2, seed=5, features=True, joined=0.5) for _ in range(2))
    second.at(3, 1)
    for name in Batch.__dataclass_fields__:
        assert torch.equal(getattr(first.at(1, 2), name), getattr(second.at(1, 2), name))
    assert not torch.equal(first.at(0, 0).tokens, first.at(1, 0).tokens)


def test_joined_rows_are_one_document_with_rising_positions() -> None:
    batch = Batches(SEQUENCES, length=32, rows=2, seed=0, features=False, joined=1.0).at(0, 0)
    assert set(batch.document.flatten().tolist()) <= {-1, 0}
    used = batch.document == 0
    assert torch.equal(batch.position[used], torch.arange(32).expand(2, -1)[used])


@pytest.mark.parametrize(("prompt", "answer"), [(30, 20), (5, 40), (1, 50), (60, 3)])
def test_of_a_sequence_that_is_too_long_the_end_is_kept(prompt: int, answer: int) -> None:
    whole = sequence(1, prompt, answer)
    batch = Batches([whole], length=16, rows=1, seed=0, features=False).at(0, 0)
    assert torch.equal(batch.tokens[0], whole.tokens[-16:])
    places = batch.answer[0].nonzero()[:, 0]
    assert len(places) == min(answer, 15)
    assert torch.equal(batch.top_ids[0, places, 0], batch.tokens[0, places + 1])


def test_nothing_to_learn_and_no_features_are_one_clear_line() -> None:
    with pytest.raises(UsageError, match="nothing to learn from"):
        Batches([], length=8, rows=1, seed=0, features=False)
    with pytest.raises(UsageError, match="no hidden states"):
        Batches([sequence(0, 2, 3)], length=8, rows=1, seed=0, features=True).at(0, 0)


def test_where_a_number_leads_does_not_depend_on_what_was_asked_before() -> None:
    """Epochs are packed differently, into different numbers of rows: a resumed training counts as the whole one."""
    uneven = [sequence(number, 2, 3 + (7 * number) % 23) for number in range(23)]
    asked, fresh = (Batches(uneven, length=32, rows=1, seed=2, features=False) for _ in range(2))
    for epoch in range(6):
        asked.at(epoch, 0)
        assert asked.per_epoch == fresh.per_epoch


@pytest.mark.parametrize("features", [True, False])
def test_a_batch_goes_to_another_device_whole(features: bool) -> None:
    batch = Batches(SEQUENCES, length=32, rows=2, seed=0, features=features).at(0, 0)
    moved = batch.to(torch.device("meta"))
    for name in Batch.__dataclass_fields__:
        here, there = getattr(batch, name), getattr(moved, name)
        assert (here is None) == (there is None)
        assert here is None or (there.is_meta and there.shape == here.shape and there.dtype == here.dtype)
