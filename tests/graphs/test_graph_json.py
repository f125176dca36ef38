import gzip
import json
from pathlib import Path

import pytest

from lope.graphs import IMPORTERS
from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph
from lope.graphs.graph_json import graph_from_document, graph_to_document, read_graph_json, write_graph_json

FIELDS = ["edges", "carries", "durations", "resources", "machine_types", "output_bytes", "scratch_bytes", "kept"]


def is_equal(one: Graph, other: Graph) -> bool:
    same = all(getattr(one, field).tolist() == getattr(other, field).tolist() for field in FIELDS)
    return same and one.names == other.names and one.name == other.name


@pytest.mark.parametrize("file", ["graph.json", "graph.json.gz"])
def test_a_graph_comes_back_as_it_went(small_graphs, tmp_path, file):
    for graph in small_graphs[:10]:
        write_graph_json(graph, tmp_path / file)
        assert is_equal(read_graph_json(tmp_path / file), graph)
        assert is_equal(IMPORTERS.make("json").read(tmp_path / file), graph)


def test_a_difference_in_any_field_is_seen(small_graphs):
    graph = next(graph for graph in small_graphs if graph.num_edges > 2)
    document = graph_to_document(graph)
    for key in ("duration", "resource", "machine_type", "output_bytes", "scratch_bytes"):
        changed = json.loads(json.dumps(document))
        changed["nodes"][0][key] += 1
        assert not is_equal(graph_from_document(changed), graph), key
    del document["edges"][0]
    assert not is_equal(graph_from_document(document), graph)


def test_edges_may_use_names_or_numbers():
    nodes = [{"name": "a"}, {"name": "b"}, {"name": "c"}]
    graph = graph_from_document({"nodes": nodes, "edges": [["a", "b"], [0, 2], ["b", 2]]})
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert graph.resources.tolist() == [1, 1, 1]
    assert graph.output_bytes.tolist() == [0, 0, 0]


def test_what_a_node_leaves_out_has_its_default():
    nodes = [{"kept": True, "resource": 3}, {"scratch_bytes": 2}, {"machine_type": 1}]
    graph = graph_from_document({"nodes": nodes, "edges": [[0, 1]]})
    assert graph.kept.tolist() == [True, True, True]
    assert graph.resources.tolist() == [3, 1, 1]
    assert graph.scratch_bytes.tolist() == [0, 2, 0]
    assert graph.machine_types.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "object"),
        ({"edges": []}, "nodes"),
        ({"nodes": []}, "edges"),
        ({"nodes": [], "edges": {}}, "list of pairs"),
        ({"nodes": [3], "edges": []}, "node 0 must be an object"),
        ({"nodes": [{"size": 3}], "edges": []}, "'size'"),
        ({"nodes": [{"output_bytes": 3}, {}], "edges": []}, "node '1' has no 'output_bytes'"),
        ({"nodes": [{"name": "x", "output_bytes": -3}], "edges": []}, "output_bytes of node 'x'"),
        ({"nodes": [{"output_bytes": "3"}], "edges": []}, "must be a number"),
        ({"nodes": [{"output_bytes": None}], "edges": []}, "must be a number"),
        ({"nodes": [{}, {}], "edges": [[0, "z"]]}, "no such node"),
        ({"nodes": [{}, {}], "edges": [[0, 5]]}, "does not exist"),
        ({"nodes": [{}, {}], "edges": [[0, 1.5]]}, "no such node"),
        ({"nodes": [{}, {}], "edges": [[0]]}, "pair"),
        ({"nodes": [{"name": "u"}, {"name": "w"}], "edges": [["u", "w"], ["w", "u"]]}, "cycle: u -> w -> u"),
        ({"nodes": [], "edges": [], "version": 2}, "version 2"),
    ],
)
def test_bad_documents_are_one_clear_line(document, said):
    with pytest.raises(GraphError, match=said) as caught:
        graph_from_document(document)
    assert "\n" not in str(caught.value)


def test_a_required_attribute_may_not_be_left_out_everywhere():
    with pytest.raises(GraphError, match="no 'output_bytes'"):
        graph_from_document({"nodes": [{}], "edges": []}, require=("output_bytes",))


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff\xfe", b"[" * 99_999, gzip.compress(b"{}", mtime=0)[:9], b"\x1f\x8bno"]
)
def test_files_that_are_no_json(tmp_path, data):
    (tmp_path / "bad.json").write_bytes(data)
    with pytest.raises(GraphError, match=r"bad\.json: not a JSON file"):
        read_graph_json(tmp_path / "bad.json")


def test_an_absent_file():
    with pytest.raises(GraphError, match="No such file"):
        read_graph_json(Path("/nowhere/graph.json"))
    with pytest.raises(GraphError, match="No such file"):
        write_graph_json(Graph.build([], num_nodes=0), Path("/nowhere/graph.json"))


def test_the_same_graph_makes_the_same_bytes(xla_graph, tmp_path):
    for file in ("one.json.gz", "two.json.gz"):
        write_graph_json(xla_graph, tmp_path / file)
    assert (tmp_path / "one.json.gz").read_bytes() == (tmp_path / "two.json.gz").read_bytes()
