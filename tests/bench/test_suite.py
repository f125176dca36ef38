"""Suites: what is read, what is refused and in which words, and that the built-in one is what it is said to be."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from lope.bench.groups import MT_BENCH, SPEC_BENCH, group_of, in_order
from lope.bench.suite import Suite
from lope.core.errors import UsageError

_ROW = {"id": "a", "category": "qa", "turns": ["Why?"]}


def _write(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_the_built_in_suite_has_four_prompts_in_each_of_six_groups() -> None:
    suite = Suite.mini()
    assert Counter(item.group for item in suite.items) == dict.fromkeys(SPEC_BENCH, 4)
    two_turns = {item.group for item in suite.items if len(item.turns) == 2}
    assert two_turns == {"mt_bench"}


def test_the_eight_categories_of_mt_bench_are_one_group_and_others_their_own() -> None:
    assert {group_of(category) for category in MT_BENCH} == {"mt_bench"}
    assert [group_of(category) for category in ("rag", "mine")] == ["rag", "mine"]
    assert in_order(["mine", "rag", "mt_bench", "rag"]) == ["mt_bench", "rag", "mine"]


def test_a_gzipped_suite_is_the_same_suite(tmp_path: Path) -> None:
    plain = _write(tmp_path / "s.jsonl", _ROW, {**_ROW, "id": 7}, "")
    packed = tmp_path / "s.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert Suite.read(packed).items == Suite.read(plain).items
    assert [item.id for item in Suite.read(plain).items] == ["a", "7"]
    assert Suite.read(packed).sha256 == Suite.read(plain).sha256


def test_per_category_takes_the_first_of_each_category(tmp_path: Path) -> None:
    rows = [
        {"id": f"{category}{number}", "category": category, "turns": ["x"]} for number in range(3) for category in "ab"
    ]
    suite = Suite.read(_write(tmp_path / "s.jsonl", *rows)).first_of_each(2)
    assert [item.id for item in suite.items] == ["a0", "b0", "a1", "b1"]


def test_any_change_of_a_prompt_changes_the_digest(tmp_path: Path) -> None:
    rows = [_ROW, {**_ROW, "turns": ["Why not?"]}, {**_ROW, "category": "rag"}, {**_ROW, "id": "b"}]
    digests = {Suite.read(_write(tmp_path / f"{number}.jsonl", row)).sha256 for number, row in enumerate(rows)}
    assert len(digests) == len(rows)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("9" * 5000, "is not an object"),
        ('{"id": "\\ud800", "category": "qa", "turns": ["x"]}', "has no id"),
        ('{"id": "b", "category": "\\ud800", "turns": ["x"]}', "has no category"),
        ("[1]", "is not an object"),
        ({"category": "qa", "turns": ["x"]}, "has no id"),
        ({"id": True, "category": "qa", "turns": ["x"]}, "has no id"),
        ({"id": "b", "turns": ["x"]}, "has no category"),
        ({"id": "b", "category": "qa"}, "has no turns"),
        ({"id": "b", "category": "qa", "turns": []}, "has no turns"),
        ({"id": "b", "category": "qa", "turns": "x"}, "has no turns"),
        ({"id": "b", "category": "qa", "turns": ["x", " "]}, "every turn is a text"),
        ({"id": "b", "category": "qa", "turns": [3]}, "every turn is a text"),
        (_ROW, "the id 'a' is there already"),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path: Path, row: object, words: str) -> None:
    path = _write(tmp_path / "s.jsonl", _ROW, row)
    with pytest.raises(UsageError) as caught:
        Suite.read(path)
    assert f"{path}, line 2: " in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", None, b"not gzip"])
def test_a_file_that_is_no_suite_is_one_clear_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / ("s.jsonl.gz" if content == b"not gzip" else "s.jsonl")
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=str(path)) as caught:
        Suite.read(path)
    assert "\n" not in str(caught.value)
