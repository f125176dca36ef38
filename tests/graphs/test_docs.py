import json
import re
from pathlib import Path

from lope.graphs.graph_json import graph_from_document

PAGE = (Path(__file__).parents[2] / "docs" / "graphs.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_snippets_of_the_page_run():
    assert len(blocks("python")) >= 2
    for block in blocks("python"):
        exec(block, {})


def test_the_json_of_the_page_is_a_graph():
    (block,) = blocks("json")
    graph = graph_from_document(json.loads(block))
    assert (graph.num_nodes, graph.num_edges, len(graph.use_edges)) == (3, 3, 2)


def test_the_page_names_every_order():
    from lope.graphs import ORDERS

    named = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert set(ORDERS) - {"topoformer"} <= named
