"""`lope plan schedule` and `lope plan bench`: what they print, and one clear line with exit code 2 for bad input."""

import json
from pathlib import Path
from typing import Any

import pytest

from lope.cli.main import main
from lope.cli.plan_bench import split_methods

SMALL = {
    "nodes": [
        {"name": "load", "duration": 2, "resource": 1},
        {"name": "left", "duration": 3, "resource": 2},
        {"name": "right", "duration": 4, "resource": 1},
        {"name": "join", "duration": 1, "resource": 1},
    ],
    "edges": [["load", "left"], ["load", "right"], ["left", "join"], ["right", "join"]],
}


def run(*arguments: str) -> int:
    """The exit code of one command."""
    try:
        main(list(arguments))
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SMALL))
    return str(path)


def write(tmp_path: Path, document: Any) -> str:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(document))
    return str(path)


@pytest.mark.parametrize(("capacity", "makespan"), [("3", 7), ("2", 10)])
def test_schedule_prints_one_document(
    small: str, capacity: str, makespan: float, capsys: pytest.CaptureFixture[str]
) -> None:
    # Capacity 3 runs left and right side by side: 2 + 4 + 1. Capacity 2 cannot: 2 + 3 + 4 + 1.
    assert run("plan", "schedule", small, "--machines", capacity, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["makespan"] == makespan
    assert found["lower_bound"] <= makespan
    assert found["gap"] == pytest.approx(makespan / found["lower_bound"] - 1)
    assert [row["node"] for row in found["schedule"]] == ["load", "left", "right", "join"]
    assert found["machines"] == [int(capacity)]


def test_schedule_draws_and_tells_people(small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "out.png"
    assert run("plan", "schedule", small, "--machines", "3", "--method", "cp", "--plot", str(plot)) == 0
    out = capsys.readouterr().out
    assert plot.read_bytes()[:4] == b"\x89PNG"
    assert "makespan, cp  7" in out
    assert "no schedule below" in out


@pytest.mark.parametrize(
    ("document", "machines", "message"),
    [
        ({**SMALL, "edges": [["load", "left"], ["left", "load"]]}, "3", "cycle: "),
        ({"nodes": [{"name": "a"}], "edges": []}, "3", "node 'a' has no 'duration'"),
        ({"nodes": [{"name": "a", "duration": -1}], "edges": []}, "3", "at least 0"),
        ({"nodes": [{"name": "a", "duration": 1, "resource": 9}], "edges": []}, "3", "holds 9 units"),
        ({"nodes": [{"name": "a", "duration": 1, "machine_type": 1}], "edges": []}, "3", "needs machine type 1"),
        ({"nodes": [], "edges": []}, "3", "empty"),
        (SMALL, "three", "whole capacities"),
        (SMALL, "0", "positive whole capacity"),
    ],
)
def test_bad_input_is_one_clear_line(
    document: Any, machines: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plan", "schedule", write(tmp_path, document), "--machines", machines, "--json") == 2
    out, err = capsys.readouterr()
    assert message in json.loads(out)["error"]
    assert message in " ".join(err.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["schedule", "nowhere.json", "--machines", "1"], "nowhere.json"),
        (["schedule", "model.onnx", "--machines", "1"], ".json"),
        (["bench", "jsp", "--set", "25x30"], "jssp, tpch, layered"),
        (["bench", "jssp", "--set", "5x5"], "25x10"),
        (["bench", "jssp", "--set", "25"], "JOBSxMACHINES"),
        (["bench", "jssp", "--set", "25x30", "--methods", "cpp"], "no scheduler part 'cpp'"),
        (["bench", "jssp", "--set", "25x30", "--methods", ","], "at least one method"),
        (["bench", "tpch", "--set", "tpch-50-test", "--data", "/nowhere"], "no TPC-H data at"),
        (["bench", "layered", "--set", "many"], "a number of nodes"),
        (["bench", "jssp", "--set", "25x20", "--methods", "learned:weights=none", "--limit", "1"], "no weights 'none'"),
    ],
)
def test_what_is_unknown_is_one_clear_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plan", *arguments, "--json") == 2
    assert message in json.loads(capsys.readouterr().out)["error"]


def test_absent_tpch_data_is_exit_code_2(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOPE_DATA", raising=False)
    assert run("plan", "bench", "tpch", "--set", "tpch-50-test") == 2
    assert "LOPE_DATA" in capsys.readouterr().err


def test_bench_prints_the_published_job_shop_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plan", "bench", "jssp", "--set", "25x30", "--methods", "cp,spt", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mean"] == {"cp": pytest.approx(2588.72), "spt": pytest.approx(2739.20)}
    assert set(found["seconds"]) == {"cp", "spt"}
    assert found["num_graphs"] == 50


def test_bench_layered_compares_orders(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plan", "bench", "layered", "--set", "60", "--methods", "bfs,best", "--limit", "2") == 0
    assert "lower bound" in capsys.readouterr().out


def test_methods_keep_their_settings() -> None:
    assert split_methods("cp,gumbel:samples=64,scale=3,heft") == ["cp", "gumbel:samples=64,scale=3", "heft"]
    assert split_methods("a:x=1,b:y=2,z=3") == ["a:x=1", "b:y=2,z=3"]
