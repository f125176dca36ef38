"""The results file: whole after every row, the same after resuming, never another run's, kept when a disk is full."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bench.documents import made_row
from tests.bench.stubs import SUITE, StubSystem, stub_results

from lope.bench.record import Row
from lope.bench.results_file import ResultsFile, read_document
from lope.bench.runner import Runner
from lope.core.errors import RunError, UsageError

_ROW = made_row(SUITE.items[0], "plain", random.Random(0))


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    results = stub_results(tmp_path / "results.json")
    results.add(_ROW)
    again = stub_results(tmp_path / "results.json")
    assert again.take_over() == 1
    assert again.rows == (_ROW,)
    assert again.has(_ROW.id, "plain")
    assert not again.has(_ROW.id, "ngram")


@pytest.mark.parametrize("setting", ["max_new_tokens", "threads", "suite_sha256"])
def test_another_runs_rows_are_refused_in_one_line(tmp_path: Path, setting: str) -> None:
    stub_results(tmp_path / "results.json", **{setting: 1}).save()
    other = stub_results(tmp_path / "results.json", **{setting: 2})
    with pytest.raises(UsageError, match=rf"other settings \({setting} was 1, is 2\): choose another --out"):
        other.take_over()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not a results file"),
        ("[]", "is not a results file"),
        ('{"schema": 1, "kind": "something else"}', "is not a results file"),
        ('{"schema": 0, "kind": "lope bench speed"}', "has schema 0, this lope reads and writes 1"),
        ('{"schema": 1, "kind": "lope bench speed"}', "is damaged"),
        ('{"schema": 1, "kind": "lope bench speed", "rows": [{"id": 1}]}', "is damaged"),
    ],
)
def test_a_file_that_cannot_be_gone_on_with_is_one_clear_line(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=words) as caught:
        stub_results(path).take_over()
    assert "\n" not in str(caught.value)
    assert path.read_text(encoding="utf-8") == content


DAMAGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "sessions are a number": lambda held: held.update(sessions=5),
    "a session is a number": lambda held: held.update(sessions=[7]),
    "systems are a number": lambda held: held.update(systems=5),
    "a system without a name": lambda held: held.update(systems=[{}]),
    "settings are a list": lambda held: held.update(settings=[]),
    "no items": lambda held: held.pop("items"),
    "another system's name": lambda held: held["systems"][0].update(name="other"),
    "a row of another system": lambda held: held["rows"][0].update(system="zzz"),
    "a row of another prompt": lambda held: held["rows"][0].update(id="zzz"),
    "a row twice": lambda held: held["rows"].append(held["rows"][0]),
    "no turns": lambda held: held["rows"][0].update(turns=[]),
    "a turn without steps": lambda held: held["rows"][0]["turns"][0].update(steps=[]),
    "a step of no tokens": lambda held: held["rows"][0]["turns"][0]["steps"][1].__setitem__(0, 0),
    "a step of fewer than none": lambda held: held["rows"][0]["turns"][0]["steps"][1].__setitem__(0, -3),
    "one token more than steps": lambda held: held["rows"][0]["turns"][0]["tokens"].append(1),
    "words for tokens": lambda held: held["rows"][0]["turns"][0]["tokens"].__setitem__(0, "x"),
    "passes in words": lambda held: held["rows"][0]["turns"][0].update(passes="x"),
    "seconds that are no number": lambda held: held["rows"][0]["turns"][0]["steps"][0].__setitem__(1, float("nan")),
    "a prompt without end": lambda held: held["rows"][0]["turns"][0].update(prompt_tokens=float("inf")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_one_clear_line(tmp_path: Path, damage: str) -> None:
    results = stub_results(tmp_path / "results.json")
    results.add(_ROW)
    held = json.loads(results.path.read_text(encoding="utf-8"))
    DAMAGES[damage](held)
    results.path.write_text(json.dumps(held), encoding="utf-8")
    with pytest.raises(UsageError, match=r"results\.json: is damaged") as caught:
        stub_results(results.path).take_over()
    assert "\n" not in str(caught.value)


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Files cannot grow beyond 3000 bytes, as on a disk that is full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, before)


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_one_clear_line_and_finished_rows_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    systems = [StubSystem("plain"), StubSystem("plain again"), StubSystem("ngram")]
    results = stub_results(path)
    with pytest.raises(RunError, match="the disk is full; what was finished before is kept") as caught:
        list(Runner(systems, SUITE, 8, 0, frozenset(), str).run(results))
    assert "\n" not in str(caught.value)
    kept = [Row.from_json(row) for row in read_document(path)["rows"]]
    assert 0 < len(kept) == len(results.rows) - 1
    assert [name.name for name in tmp_path.iterdir()] == ["results.json"]


_CHILD = """
import sys, time
from pathlib import Path
from tests.bench.stubs import SUITE, StubSystem, stub_results
from lope.bench.runner import Runner

class Slow(StubSystem):
    def answer(self, item, limit):
        time.sleep(0.02)
        return super().answer(item, limit)

results = stub_results(Path(sys.argv[1]))
results.take_over()
systems = [Slow("plain"), Slow("plain again"), Slow("ngram")]
for row in Runner(systems, SUITE, 8, 0, frozenset(), print).run(results):
    print(row.id, row.system, flush=True)
"""


def _child(path: Path) -> "subprocess.Popen[str]":
    root = Path(__file__).parents[2]
    settings = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'src'}"}
    return subprocess.Popen([sys.executable, "-c", _CHILD, str(path)], stdout=subprocess.PIPE, text=True, env=settings)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_loses_no_finished_row_and_doubles_none(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "results.json"
    announced: list[str] = []
    for rows_until_kill in (2, 5):
        child = _child(path)
        assert child.stdout is not None
        announced += [child.stdout.readline().strip() for _ in range(rows_until_kill)]
        time.sleep(random.Random(rows_until_kill).random() * 0.05)
        child.send_signal(number)
        announced += child.stdout.read().split("\n")
        child.stdout.close()
        child.wait()
        announced = [line for line in announced if line]
        kept = [f"{row['id']} {row['system']}" for row in read_document(path)["rows"]]
        assert set(announced) <= set(kept)
        assert max(Counter(kept).values()) == 1
    child = _child(path)
    assert child.stdout is not None
    last = [line for line in child.stdout.read().split("\n") if line]
    child.stdout.close()
    assert child.wait() == 0
    assert not set(last) & set(announced), "what was finished is not run again"
    rows = read_document(path)["rows"]
    assert Counter((row["id"], row["system"]) for row in rows) == dict.fromkeys(
        [(item.id, name) for item in SUITE.items for name in ("plain", "plain again", "ngram")], 1
    )


class Forgetful(ResultsFile):
    """A mutant: it goes on without looking which rows are there, and keeps them beside the new ones."""

    def has(self, item: str, system: str) -> bool:
        return False


def test_a_resume_that_doubles_rows_is_caught(tmp_path: Path) -> None:
    results = stub_results(tmp_path / "results.json")
    results.add(_ROW)
    mutant = Forgetful(tmp_path / "results.json", results.head)
    mutant.take_over()
    with pytest.raises(AssertionError, match="answered once"):
        list(Runner([StubSystem("plain")], SUITE, 8, 0, frozenset(), str).run(mutant))


def test_the_file_is_json_with_one_row_a_line(tmp_path: Path) -> None:
    results = stub_results(tmp_path / "results.json")
    results.add(_ROW)
    lines = results.path.read_text(encoding="utf-8").splitlines()
    assert json.loads("\n".join(lines))["schema"] == 1
    assert sum(line.startswith('{"id":') and '"turns":' in line for line in lines) == 1
