"""Graphs as JSON files, plain or gzipped; the format is described in docs/graphs.md.

{"format": "lope-graph", "version": 1, "name": "small",
 "nodes": [{"name": "a", "output_bytes": 4, "duration": 2.0, "kept": false}, ...],
 "edges": [["a", "b"], [0, 1], ...], "order_edges": [...]}
"""

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lope.core import json_reader
from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph

# Name in the file -> argument of Graph.build.
ATTRIBUTES = {
    "duration": "durations",
    "resource": "resources",
    "machine_type": "machine_types",
    "output_bytes": "output_bytes",
    "scratch_bytes": "scratch_bytes",
    "kept": "kept",
}


@dataclass(frozen=True)
class JsonImporter:
    """Reads `.json` and `.json.gz` files."""

    def read(self, path: Path) -> Graph:
        """The graph in a file. Raises GraphError as `read_graph_json` does."""
        return read_graph_json(path)


def read_graph_json(path: Path, *, require: Sequence[str] = ()) -> Graph:
    """The graph in a file; every node must have the attributes in `require` (names as in the file).

    Raises GraphError where the file is absent, is no such JSON, lacks an attribute, or holds a graph that cannot be.
    """
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8")
        document = json_reader.parsed(text)
    except OSError as error:
        raise GraphError(f"{path}: {error.strerror or error}") from None
    except (ValueError, EOFError, zlib.error) as error:
        raise GraphError(f"{path}: not a JSON file: {error}") from None
    return graph_from_document(document, where=str(path), require=require)


def graph_from_document(document: Any, *, where: str = "graph", require: Sequence[str] = ()) -> Graph:
    """The graph that a parsed JSON document describes. Raises GraphError, which names `where`."""
    if not isinstance(document, dict) or not isinstance(document.get("nodes"), list):
        raise GraphError(f'{where}: a graph file is an object with "nodes" (a list) and "edges" (a list)')
    if document.get("version", 1) != 1:
        raise GraphError(f"{where}: this is version {document['version']} of the format; this lope reads version 1")
    nodes, edges = document["nodes"], document.get("edges")
    if edges is None:
        raise GraphError(f'{where}: "edges" (a list of pairs) is missing')
    for index, node in enumerate(nodes):
        if not isinstance(node, dict):
            raise GraphError(f"{where}: node {index} must be an object, not {node!r:.40}")
        unknown = [key for key in node if key not in ATTRIBUTES and key != "name"]
        if unknown:
            raise GraphError(f"{where}: node {index} has {unknown[0]!r} (known: name, {', '.join(ATTRIBUTES)})")
    names = [str(node.get("name", index)) for index, node in enumerate(nodes)]
    pairs, orders = _pairs(where, edges, names), _pairs(where, document.get("order_edges", []), names)
    first = {pair[0] for pair in (*pairs, *orders)}
    defaults: dict[str, Any] = {"resource": 1, "machine_type": 0, "scratch_bytes": 0}
    filled = [{**defaults, "kept": index not in first, **node} for index, node in enumerate(nodes)]
    columns: dict[str, Any] = {}
    for key, argument in ATTRIBUTES.items():
        if key in require or any(key in node for node in nodes):
            columns[argument] = _column(where, filled, names, key)
    name = document.get("name")
    return Graph.build(pairs, order_edges=orders, name=str(name) if name is not None else where, names=names, **columns)


def graph_to_document(graph: Graph) -> dict[str, Any]:
    """The JSON document of a graph; `graph_from_document` builds an equal one."""
    arrays = [getattr(graph, argument).tolist() for argument in ATTRIBUTES.values()]
    rows = zip(graph.names, *arrays, strict=True)
    nodes = [{"name": row[0], **dict(zip(ATTRIBUTES, row[1:], strict=True))} for row in rows]
    edges = {"edges": graph.use_edges.tolist(), "order_edges": graph.edges[~graph.carries].tolist()}
    return {"format": "lope-graph", "version": 1, "name": graph.name, "nodes": nodes, **edges}


def write_graph_json(graph: Graph, path: Path) -> None:
    """Write a graph; a name that ends in `.gz` is compressed (the same graph always to the same bytes)."""
    data = json.dumps(graph_to_document(graph), separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    try:
        path.write_bytes(gzip.compress(data, 9, mtime=0) if path.suffix == ".gz" else data)
    except OSError as error:
        raise GraphError(f"{path}: {error.strerror or error}") from None


def _column(where: str, nodes: list[dict[str, Any]], names: list[str], key: str) -> list[Any]:
    column = []
    for name, node in zip(names, nodes, strict=True):
        if key not in node:
            raise GraphError(f"{where}: node {name!r} has no {key!r}")
        if not isinstance(node[key], int | float):
            raise GraphError(f"{where}: {key} of node {name!r} must be a number, not {node[key]!r:.40}")
        if key != "kept" and not 0 <= node[key] < 2**62:
            raise GraphError(f"{where}: {key} of node {name!r} must be a number of at least 0, not {node[key]}")
        column.append(node[key])
    return column


def _pairs(where: str, edges: Any, names: list[str]) -> list[tuple[int, int]]:
    numbers = {name: index for index, name in enumerate(names)}
    pairs: list[tuple[int, int]] = []
    if not isinstance(edges, list):
        raise GraphError(f"{where}: edges must be a list of pairs, not {edges!r:.60}")
    for edge in edges:
        if not isinstance(edge, list) or len(edge) != 2:
            raise GraphError(f"{where}: an edge is a pair [from, to], not {edge!r:.60}")
        ends: list[Any] = [numbers.get(end) if isinstance(end, str) else end for end in edge]
        for end, given in zip(ends, edge, strict=True):
            if type(end) is not int:
                raise GraphError(f"{where}: edge {edge!r:.60} names {given!r:.40}, and there is no such node")
        pairs.append((ends[0], ends[1]))
    return pairs
