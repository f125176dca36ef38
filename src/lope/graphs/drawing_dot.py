"""A graph as Graphviz DOT text."""

from pathlib import Path

from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph


def write_dot(graph: Graph, path: Path) -> None:
    """Write `dot_text` to a file. Raises GraphError where it can't be written."""
    try:
        path.write_text(dot_text(graph), encoding="utf-8")
    except OSError as error:
        raise GraphError(f"{path}: {error.strerror or error}") from None


def dot_text(graph: Graph) -> str:
    """One line per node, labelled with its name and what is not 0 of its costs.

    Kept results have a bold frame; edges that carry no result are dashed.
    """
    lines = [f"digraph {_quoted(graph.name)} {{", "  node [shape=box];"]
    for node in range(graph.num_nodes):
        bold = ", style=bold" if graph.kept[node] else ""
        lines.append(f"  {node} [label={_quoted(_label(graph, node))}{bold}];")
    for (first, then), carries in zip(graph.edges.tolist(), graph.carries.tolist(), strict=True):
        lines.append(f"  {first} -> {then}{'' if carries else ' [style=dashed]'};")
    return "\n".join([*lines, "}", ""])


def _label(graph: Graph, node: int) -> str:
    parts = [graph.names[node]]
    if graph.output_bytes[node] or graph.scratch_bytes[node]:
        scratch = f" + {graph.scratch_bytes[node]}" if graph.scratch_bytes[node] else ""
        parts.append(f"{graph.output_bytes[node]}{scratch} B")
    if graph.durations[node]:
        parts.append(f"{graph.durations[node]:g} on {graph.resources[node]} of type {graph.machine_types[node]}")
    return "\n".join(parts)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
