"""Aggregates against figures computed another way; agreement, pooling, and who is compared with whom."""

from statistics import median

import numpy as np
import pytest
from tests.bench.documents import made_document

from lope.bench.record import Row
from lope.bench.summary import Summary


def _rows(document: dict[str, object], system: str) -> dict[str, dict[str, object]]:
    return {row["id"]: row for row in document["rows"] if row["system"] == system}  # type: ignore[attr-defined]


def test_a_speedup_is_the_median_of_the_ratios_of_the_written_figures() -> None:
    document = made_document()
    base, own = _rows(document, "plain"), _rows(document, "ngram")
    figures = Summary.of_document(document).overall["ngram"]
    for key, found in (
        ("tokens_per_second", figures.speedup),
        ("tokens_per_second_with_prompt", figures.speedup_with_prompt),
    ):
        ratios = [own[name]["figures"][key] / base[name]["figures"][key] for name in base]  # type: ignore[index]
        assert found is not None
        assert found.median == pytest.approx(median(ratios), rel=1e-4)
        assert found.low < found.median < found.high


def test_tokens_per_pass_and_waste_are_pooled_not_averaged() -> None:
    document = made_document()
    rows = [Row.from_json(row) for row in _rows(document, "ngram").values()]
    figures = Summary.of_document(document).overall["ngram"]
    assert figures.tokens_per_pass == sum(r.decode_tokens for r in rows) / sum(r.passes or 0 for r in rows)
    assert figures.drafted_per_accepted == sum(r.drafted or 0 for r in rows) / sum(r.accepted or 0 for r in rows)
    averaged = np.mean([row.tokens_per_pass for row in rows])
    assert figures.tokens_per_pass != pytest.approx(averaged, rel=1e-6)


def test_plain_decoding_makes_exactly_one_token_a_pass_and_agrees_with_itself() -> None:
    summary = Summary.of_document(made_document())
    for name in ("plain", "plain again"):
        assert summary.overall[name].tokens_per_pass == 1.0
        assert summary.overall[name].agreement == 1.0
    own = summary.overall["plain"].speedup
    assert own is not None
    assert (own.low, own.median, own.high) == (1.0, 1.0, 1.0)


def test_agreement_counts_prompts_with_equal_tokens() -> None:
    document = made_document()
    rows = _rows(document, "ngram")
    for name in list(rows)[:6]:
        rows[name]["turns"][-1]["tokens"][-1] = 99  # type: ignore[index]
    assert Summary.of_document(document).overall["ngram"].agreement == pytest.approx(18 / 24)


def test_a_system_that_does_not_tell_its_passes_has_none() -> None:
    figures = Summary.of_document(made_document(peers=("a peer",))).overall["a peer"]
    assert figures.tokens_per_pass is None
    assert figures.drafted is None
    assert figures.acceptance == ()
    assert figures.speedup is not None


def test_a_system_with_missing_rows_is_compared_on_those_it_has() -> None:
    document = made_document(lacking=(("mini-qa-1", "ngram"), ("mini-qa-2", "plain")))
    summary = Summary.of_document(document)
    assert summary.overall["ngram"].prompts == 23
    assert summary.by_group["ngram"]["qa"].prompts == 3


def test_acceptance_by_position_is_pooled_over_turns() -> None:
    document = made_document()
    rows = [Row.from_json(row) for row in _rows(document, "ngram").values()]
    offered = np.sum([turn.offered_at for row in rows for turn in row.turns], axis=0)
    accepted = np.sum([turn.accepted_at for row in rows for turn in row.turns], axis=0)
    assert Summary.of_document(document).overall["ngram"].acceptance == pytest.approx(accepted / offered)


def test_the_json_has_the_promised_form() -> None:
    document = Summary.of_document(made_document()).to_json()
    assert document["reference"] == "plain"
    names = {"tokens_per_pass", "tokens_per_pass_low", "tokens_per_pass_high", "speedup", "speedup_low", "speedup_high"}
    names |= {"speedup_with_prompt", "agreement"}
    for figures in document["systems"].values():
        assert set(figures) == names | {"categories"}
        assert all(set(group) == names for group in figures["categories"].values())
    assert list(document["systems"]) == ["plain", "plain again", "ngram"]
