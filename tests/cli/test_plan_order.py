import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from lope.cli.main import main
from lope.graphs.graph import Graph
from lope.graphs.graph_json import read_graph_json, write_graph_json
from lope.graphs.memory import peak_memory


@pytest.fixture
def xla_file(tmp_path) -> Path:
    # XLA's own example, in an order that holds 6; the best holds 5.
    edges = [("A", "B"), ("A", "D"), ("A", "E"), ("B", "C"), ("D", "F"), ("E", "F"), ("C", "G"), ("F", "G")]
    sizes = {"A": 1, "D": 1, "E": 1, "B": 2, "F": 2, "C": 1, "G": 0}
    nodes = [{"name": name, "output_bytes": size} for name, size in sizes.items()]
    (tmp_path / "xla.json").write_text(json.dumps({"name": "xla", "nodes": nodes, "edges": edges}))
    return tmp_path / "xla.json"


def lope(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def document(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> dict:
    assert lope("plan", "order", *arguments, "--json") == code
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    return json.loads(lines[0])


@pytest.mark.parametrize("method", ["best", "beam", "exact", "cp_sat", "best:seconds=1"])
def test_json_holds_both_peaks_and_the_order(xla_file, capsys, method):
    found = document(capsys, xla_file, "--method", method)
    assert (found["peak_before"], found["peak_after"], found["lower_bound"]) == (6, 5, 4)
    graph = read_graph_json(xla_file)
    assert peak_memory(graph, [graph.names.index(name) for name in found["order"]]) == 5
    assert (found["graph"], found["num_nodes"], found["num_edges"], found["method"]) == ("xla", 7, 8, method)


def test_people_get_the_peaks_too(xla_file, capsys):
    assert lope("plan", "order", xla_file) == 0
    shown = capsys.readouterr().out
    assert "6 B" in shown
    assert "5 B" in shown
    assert "-16.7 %" in shown


def test_pictures_and_the_reordered_graph(xla_file, tmp_path, capsys):
    files = {"--plot": "plot.png", "--draw": "graph.dot", "--write": "better.json"}
    options = [part for option, file in files.items() for part in (option, tmp_path / file)]
    found = document(capsys, xla_file, *options)
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert "digraph" in (tmp_path / "graph.dot").read_text()
    better = read_graph_json(tmp_path / "better.json")
    assert list(better.names) == found["order"]
    assert peak_memory(better, range(7)) == 5
    assert document(capsys, xla_file, "--draw", tmp_path / "graph.png")["peak_after"] == 5
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def onnx_file(tmp_path) -> Path:
    """Two towers that widen and narrow again, written side by side: one after the other holds less."""
    rng = np.random.default_rng(0)
    weights = {"wide": rng.normal(size=(8, 4096)), "narrow": rng.normal(size=(4096, 8))}
    names = ("a", "b", "c")
    nodes = [helper.make_node("MatMul", ["x", "wide"], [f"{n}1"], name=f"{n}-wide") for n in names]
    nodes += [helper.make_node("Tanh", [f"{n}1"], [f"{n}2"], name=f"{n}-tanh") for n in names]
    nodes += [helper.make_node("MatMul", [f"{n}2", "narrow"], [f"{n}3"], name=f"{n}-narrow") for n in names]
    nodes += [helper.make_node("Sum", ["a3", "b3", "c3"], ["y"], name="sum")]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 8]) for n in "xy"]
    stored = [numpy_helper.from_array(w.astype(np.float32), n) for n, w in weights.items()]
    graph = helper.make_graph(nodes, "towers", ends[:1], ends[1:], stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "towers.onnx")
    return tmp_path / "towers.onnx"


def test_a_reordered_onnx_runs_to_equal_outputs(onnx_file, tmp_path, capsys):
    written = tmp_path / "better.onnx"
    found = document(capsys, onnx_file, "--dynamic", 2, "--write", written)
    # Given: three results of 2 x 4096 floats and then a fourth. Best: two, beside the small ends.
    assert found["peak_before"] == 4 * 32768
    assert 2 * 32768 <= found["peak_after"] < 2 * 32768 + 4096
    data = np.random.default_rng(1).normal(size=(2, 8)).astype(np.float32)
    results = []
    for file in (onnx_file, written):
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        results.append(session.run(None, {"x": data})[0].tobytes())
    assert results[0] == results[1]
    assert [node.name for node in onnx.load(written).graph.node] == found["order"][1:]
    again = document(capsys, written, "--dynamic", 2, "--method", "as_given")
    assert again["peak_before"] == found["peak_after"]


def bad_files(folder: Path) -> dict[str, tuple[Path, str]]:
    two = [{"name": name, "output_bytes": 1} for name in "ab"]
    documents = {
        "cycle": ({"nodes": two, "edges": [["a", "b"], ["b", "a"]]}, "a -> b -> a"),
        "missing": ({"nodes": [{"name": "a"}], "edges": []}, "node 'a' has no 'output_bytes'"),
        "negative": ({"nodes": [{"name": "a", "output_bytes": -1}], "edges": []}, "at least 0, not -1"),
        "no edges": ({"nodes": []}, '"edges"'),
    }
    found = {}
    for name, (content, said) in documents.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(content))
        found[name] = (path, said)
    (folder / "text.json").write_text("not json")
    (folder / "text.onnx").write_text("not onnx")
    (folder / "text.pt2").write_text("not pt2")
    (folder / "graph.txt").write_text("")
    found["text"] = (folder / "text.json", "not a JSON file")
    found["onnx"] = (folder / "text.onnx", "not an ONNX file")
    found["pt2"] = (folder / "text.pt2", "not a torch.export archive")
    found["suffix"] = (folder / "graph.txt", ".onnx")
    found["absent"] = (folder / "nowhere.json", "no such file")
    return found


def test_bad_files_are_one_clear_line_and_exit_code_two(tmp_path, capsys):
    for name, (path, said) in bad_files(tmp_path).items():
        found = document(capsys, path, code=2)
        assert list(found) == ["error"], name
        assert said in found["error"], name
        assert "\n" not in found["error"], name
        assert lope("plan", "order", path) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1, name


def test_an_empty_graph_and_disconnected_parts_are_fine(tmp_path, capsys):
    for count in (0, 3):
        write_graph_json(Graph.build([], output_bytes=[2] * count, num_nodes=count), tmp_path / "g.json")
        found = document(capsys, tmp_path / "g.json")
        assert found["peak_before"] == found["peak_after"] == 2 * count


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--method", "magic"], "there are: as_given"),
        (["--method", "beam:width=0"], "width must be at least 1"),
        (["--method", "beam:depth=3"], "no setting"),
        (["--seconds", "0"], "seconds must be"),
        (["--write", "model.onnx"], "in .json"),
        (["--draw", "graph.gif"], ".dot or .png"),
        (["--plot", "nowhere/plot.png"], "cannot be written"),
    ],
)
def test_bad_options_are_one_clear_line(xla_file, capsys, options, said):
    assert said in document(capsys, xla_file, *options, code=2)["error"]


def test_a_large_graph_keeps_to_its_time(tmp_path, capsys):
    # No bound on the clock: that a graph on which a beam would take hours ends at all is the point.
    n = 10_000
    rng = np.random.default_rng(0)
    pairs = np.sort(rng.integers(0, n, (3 * n, 2)), axis=1)
    graph = Graph.build(pairs[pairs[:, 0] < pairs[:, 1]], output_bytes=rng.integers(1, 99, n))
    write_graph_json(graph, tmp_path / "large.json.gz")
    found = document(capsys, tmp_path / "large.json.gz", "--seconds", 0.2)
    assert found["peak_after"] <= found["peak_before"]
