import re

import numpy as np
import pytest
from matplotlib.image import imread

from lope.graphs.drawing_dot import dot_text, write_dot
from lope.graphs.drawing_png import node_levels, write_png
from lope.graphs.errors import GraphError
from lope.graphs.generators.layered import layered_graph
from lope.graphs.graph import Graph
from lope.graphs.memory import memory_timeline
from lope.graphs.memory_plot import plot_timelines


def test_dot_has_every_node_and_edge(small_graphs):
    for graph in small_graphs:
        text = dot_text(graph)
        assert len(re.findall(r"^  \d+ \[label=", text, re.MULTILINE)) == graph.num_nodes
        pairs = [[int(a), int(b)] for a, b in re.findall(r"^  (\d+) -> (\d+)", text, re.MULTILINE)]
        assert pairs == graph.edges.tolist()
        assert text.count("dashed") == int((~graph.carries).sum())


def test_dot_quotes_names():
    text = dot_text(Graph.build([], names=['a"b\\c'], output_bytes=[3], durations=[2]))
    assert r'label="a\"b\\c\n3 B\n2 on 1 of type 0"' in text


def test_levels_are_longest_paths():
    graph = Graph.build([(0, 1), (1, 2), (0, 2), (3, 2)], num_nodes=4)
    assert node_levels(graph).tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("num_nodes", [0, 1, 30, 200])
def test_pictures_are_pictures(tmp_path, num_nodes):
    made = Graph.build([], num_nodes=num_nodes)
    graph = layered_graph(np.random.default_rng(0), num_nodes) if num_nodes > 3 else made
    write_png(graph, tmp_path / "graph.png")
    lines = {"one": memory_timeline(graph, graph.topological_order)}
    plot_timelines(graph, lines, tmp_path / "plot.png")
    for file in ("graph.png", "plot.png"):
        assert imread(tmp_path / file).std() > 0.01


def test_what_cannot_be_drawn_is_one_clear_line(tmp_path, xla_graph):
    with pytest.raises(GraphError, match=r"write a \.dot file"):
        write_png(Graph.build([], num_nodes=5001), tmp_path / "graph.png")
    for write in (write_png, write_dot):
        with pytest.raises(GraphError, match=r"No such file|cannot be written"):
            write(xla_graph, tmp_path / "nowhere" / "graph.png")
    with pytest.raises(GraphError, match="cannot be written"):
        plot_timelines(xla_graph, {}, tmp_path / "plot.nothing")
