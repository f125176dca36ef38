"""The order of a run: all systems on a prompt before the next, in rotation; and what happens to those that fail."""

from pathlib import Path

import pytest
from tests.bench.stubs import SUITE, StubSystem, stub_results

from lope.bench.runner import Runner
from lope.core.errors import RunError

NEEDED = frozenset({"plain", "plain again"})


def _runner(*systems: StubSystem, seed: int = 0) -> tuple[Runner, list[str]]:
    said: list[str] = []
    return Runner(systems, SUITE, 8, seed, NEEDED, said.append), said


def _three() -> list[StubSystem]:
    return [StubSystem("plain"), StubSystem("plain again"), StubSystem("ngram")]


def test_every_prompt_is_answered_by_every_system_before_the_next() -> None:
    planned = _runner(*_three())[0].schedule()
    chunks = [planned[at : at + 3] for at in range(0, len(planned), 3)]
    assert all(len({item.id for item, _, _ in chunk}) == 1 for chunk in chunks)
    assert {item.id for item, _, _ in planned} == {item.id for item in SUITE.items}
    assert all(sorted(system.name for _, _, system in chunk) == ["ngram", "plain", "plain again"] for chunk in chunks)


def test_the_systems_rotate_and_the_prompts_are_shuffled_by_the_seed() -> None:
    planned = _runner(*_three())[0].schedule()
    first = [system.name for _, place, system in planned if place == 0]
    assert first == ["plain", "plain again", "ngram", "plain", "plain again", "ngram"]
    orders = [
        [item.id for item, place, _ in _runner(*_three(), seed=seed)[0].schedule() if place == 0] for seed in (0, 0, 1)
    ]
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != [item.id for item in SUITE.items]


def test_a_system_is_warmed_up_once_and_its_warming_is_no_row(tmp_path: Path) -> None:
    systems = _three()
    results = stub_results(tmp_path / "results.json")
    assert all(_runner(*systems)[0].run(results))
    assert len(results.rows) == 18
    for system in systems:
        assert [limit for _, limit in system.asked] == [4, *[8] * 6]


def test_a_system_that_fails_is_left_out_with_one_line_and_keeps_its_rows(tmp_path: Path) -> None:
    order = [item.id for item, place, _ in _runner(*_three())[0].schedule() if place == 0]
    systems = [StubSystem("plain"), StubSystem("plain again"), StubSystem("ngram", fails_at=order[3])]
    runner, said = _runner(*systems)
    results = stub_results(tmp_path / "results.json")
    rows = list(runner.run(results))
    assert rows.count(None) == 3
    assert len(said) == 1
    assert f"ngram failed at prompt {order[3]}: it died (signal SIGSEGV)" in said[0]
    assert [row.id for row in results.rows if row.system == "ngram"] == order[:3]
    assert len([row for row in results.rows if row.system == "plain"]) == 6
    assert systems[2].closed == 1


def test_a_needed_system_that_fails_ends_the_run_and_rows_are_kept(tmp_path: Path) -> None:
    order = [item.id for item, place, _ in _runner(*_three())[0].schedule() if place == 0]
    runner, _ = _runner(StubSystem("plain", fails_at=order[2]), StubSystem("plain again"), StubSystem("ngram"))
    results = stub_results(tmp_path / "results.json")
    with pytest.raises(RunError, match="plain failed at prompt"):
        list(runner.run(results))
    kept = stub_results(tmp_path / "results.json")
    assert kept.take_over() == len(results.rows) >= 6
