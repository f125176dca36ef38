import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from lope.graphs import IMPORTERS
from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph
from lope.graphs.importers.onnx_file import OnnxImporter
from lope.graphs.memory import peak_memory
from lope.graphs.onnx_writer import write_reordered_onnx


def value(name: str, shape: list, kind: int = TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def save(path, nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(nodes, "model", inputs, outputs, [numpy_helper.from_array(w, n) for n, w in weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@pytest.fixture
def branches(tmp_path):
    """x [1, 4] -> wide [1, 64] (a reshaped weight inside) -> two narrow branches with a view -> sum."""
    rng = np.random.default_rng(0)
    weights = [
        ("w", rng.normal(size=(64, 4)).astype(np.float32)),
        ("v", rng.normal(size=(64, 2)).astype(np.float32)),
        ("flat", np.array([4, 64])),
        ("square", np.array([8, 8])),
        ("row", np.array([1, 64])),
    ]
    nodes = [
        helper.make_node("Constant", [], ["two"], value_float=2.0),
        helper.make_node("Reshape", ["w", "flat"], ["w2"], name="reshape_w"),
        helper.make_node("MatMul", ["x", "w2"], ["wide"], name="widen"),
        helper.make_node("Reshape", ["wide", "square"], ["folded"], name="fold"),
        helper.make_node("Relu", ["wide"], ["one"], name="one"),
        helper.make_node("Transpose", ["folded"], ["turned"], name="turn"),
        helper.make_node("Reshape", ["turned", "row"], ["other"], name="unfold"),
        helper.make_node("MatMul", ["one", "v"], ["left"], name="left"),
        helper.make_node("MatMul", ["other", "v"], ["right"], name="right"),
        helper.make_node("Mul", ["left", "two"], ["doubled"], name="double"),
        helper.make_node("Add", ["doubled", "right"], ["y"], name="add"),
    ]
    return save(tmp_path / "branches.onnx", nodes, [value("x", [1, 4])], [value("y", [1, 2])], weights)


def test_views_are_merged_and_weights_are_apart(branches):
    graph = IMPORTERS.make("onnx").read(branches)
    sizes = dict(zip(graph.names, graph.output_bytes.tolist(), strict=True))
    assert sizes == {"x": 16, "widen": 256, "one": 256, "turn": 256, "left": 8, "right": 8, "double": 8, "add": 8}
    pairs = {(graph.names[first], graph.names[then]) for first, then in graph.edges.tolist()}
    assert pairs == {
        ("x", "widen"),
        ("widen", "one"),
        ("widen", "turn"),
        ("one", "left"),
        ("turn", "right"),
        ("left", "double"),
        ("double", "add"),
        ("right", "add"),
    }
    assert [graph.names[node] for node in np.flatnonzero(graph.kept)] == ["add"]


def operator_names(path) -> list[str]:
    return [node.name for node in onnx.load(path).graph.node]


def run(path, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def test_every_order_of_the_graph_is_a_model_with_equal_outputs(branches, tmp_path):
    program = OnnxImporter().program(branches)
    feeds = {"x": np.random.default_rng(1).normal(size=(1, 4)).astype(np.float32)}
    expected = run(branches, feeds)
    written = set()
    rng = np.random.default_rng(2)
    for _ in range(8):
        order = shuffled(program.graph, rng)
        write_reordered_onnx(branches, program, order, tmp_path / "out.onnx")
        onnx.checker.check_model(onnx.load(tmp_path / "out.onnx"), full_check=True)
        assert run(tmp_path / "out.onnx", feeds)[0].tobytes() == expected[0].tobytes()
        names = [name for name in operator_names(tmp_path / "out.onnx") if name in program.graph.names]
        assert names == [program.graph.names[node] for node in order if program.graph.names[node] != "x"]
        again = IMPORTERS.make("onnx").read(tmp_path / "out.onnx")
        assert peak_memory(again, np.arange(again.num_nodes)) == peak_memory(
            program.graph, [0, *(v for v in order if v)]
        )
        written.add(tuple(names))
    assert len(written) > 3


def shuffled(graph: Graph, rng: np.random.Generator) -> list[int]:
    order: list[int] = []
    while len(order) < graph.num_nodes:
        ready = [
            v for v in range(graph.num_nodes) if v not in order and set(graph.predecessors(v).tolist()) <= set(order)
        ]
        order.append(int(rng.choice(ready)))
    return order


def test_a_written_model_in_a_wrong_order_would_be_refused(branches, tmp_path):
    program = OnnxImporter().program(branches)
    with pytest.raises(GraphError, match="has to come first"):
        write_reordered_onnx(branches, program, range(program.graph.num_nodes)[::-1], tmp_path / "out.onnx")
    other = save(tmp_path / "o.onnx", [helper.make_node("Relu", ["x"], ["y"])], [value("x", [1])], [value("y", [1])])
    with pytest.raises(GraphError, match="not read from this file"):
        write_reordered_onnx(other, program, program.graph.topological_order, tmp_path / "out.onnx")


def test_a_view_whose_shape_is_computed_stays_an_operator(tmp_path):
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], name="shape"),
        helper.make_node("Reshape", ["x", "shape"], ["y"], name="reshape"),
    ]
    graph = IMPORTERS.make("onnx").read(save(tmp_path / "m.onnx", nodes, [value("x", [2, 3])], [value("y", [2, 3])]))
    assert graph.names == ("x", "shape", "reshape")
    assert graph.output_bytes.tolist() == [24, 16, 24]


def test_number_types_have_their_sizes(tmp_path):
    kinds = {
        TensorProto.FLOAT16: 2,
        TensorProto.DOUBLE: 8,
        TensorProto.INT8: 1,
        TensorProto.BFLOAT16: 2,
        TensorProto.BOOL: 1,
    }
    for kind, size in kinds.items():
        path = save(
            tmp_path / "m.onnx",
            [helper.make_node("Identity", ["x"], ["y"])],
            [value("x", [5], kind)],
            [value("y", [5], kind)],
        )
        assert IMPORTERS.make("onnx").read(path).output_bytes.tolist() == [5 * size]


def test_several_results_of_one_operator_are_one_block(tmp_path):
    node = helper.make_node("Split", ["x"], ["a", "b"], name="split", num_outputs=2, axis=1)
    inputs, outputs = [value("x", [2, 6])], [value("a", [2, 3])]
    graph = helper.make_graph([node], "model", inputs, outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), tmp_path / "m.onnx")
    assert IMPORTERS.make("onnx").read(tmp_path / "m.onnx").output_bytes.tolist() == [48, 48]


def test_open_dimensions_need_a_size(tmp_path):
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Relu", ["x"], ["y"])],
        [value("x", ["batch", 3])],
        [value("y", ["batch", 3])],
    )
    with pytest.raises(GraphError, match="--dynamic"):
        IMPORTERS.make("onnx").read(path)
    for size in (1, 5):
        assert IMPORTERS.make(f"onnx:dynamic={size}").read(path).output_bytes.tolist() == [12 * size, 12 * size]


def test_subgraphs_are_refused_by_name(tmp_path):
    branch = [
        helper.make_graph([helper.make_node("Relu", ["x"], [name])], name, [], [value(name, [1])])
        for name in ("a", "b")
    ]
    node = helper.make_node("If", ["c"], ["y"], name="choice", then_branch=branch[0], else_branch=branch[1])
    path = save(tmp_path / "m.onnx", [node], [value("x", [1]), value("c", [1], TensorProto.BOOL)], [value("y", [1])])
    with pytest.raises(GraphError, match=r"'choice' \(If\) has a subgraph") as caught:
        IMPORTERS.make("onnx").read(path)
    assert "\n" not in str(caught.value)


def test_a_value_that_nothing_makes(tmp_path):
    path = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["z"], ["y"])], [value("x", [1])], [value("y", [1])])
    with pytest.raises(GraphError, match="'z' is used before anything makes it"):
        IMPORTERS.make("onnx").read(path)


@pytest.mark.parametrize("data", [b"", b"no model", bytes(range(256)) * 4])
def test_files_that_are_no_onnx(tmp_path, data):
    (tmp_path / "bad.onnx").write_bytes(data)
    with pytest.raises(GraphError, match=r"bad\.onnx: not an ONNX file"):
        IMPORTERS.make("onnx").read(tmp_path / "bad.onnx")


def test_operators_without_names_get_some(tmp_path):
    nodes = [helper.make_node("Relu", [a], [b]) for a, b in itertools.pairwise("xabcy")]
    path = save(tmp_path / "m.onnx", nodes, [value("x", [1])], [value("y", [1])])
    assert IMPORTERS.make("onnx").read(path).names == ("x", "a", "b", "c", "y")
