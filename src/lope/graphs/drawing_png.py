"""A graph as a picture: layers from left to right, dots as large as their results."""

from pathlib import Path

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph, Ints

MOST_NODES = 5_000
MOST_NAMES = 80


def write_png(graph: Graph, path: Path) -> None:
    """Draw a graph of at most 5,000 nodes; all edges go to the right, dotted where they carry nothing.

    A dot's area tells its result's bytes, its colour the machine type; up to 80 nodes have their names. Raises
    GraphError for a larger graph, or where the file can't be written.
    """
    if graph.num_nodes > MOST_NODES:
        raise GraphError(f"{graph.name}: {graph.num_nodes} nodes make no readable picture; write a .dot file instead")
    levels = node_levels(graph)
    across = levels.astype(np.float64)
    up = _heights(levels)
    figure = Figure(figsize=(min(40.0, 4 + 0.5 * (levels.max(initial=0) + 1)), 7), layout="constrained")
    axes = figure.add_subplot(title=graph.name)
    places = np.stack([across, up], axis=1)
    for carries, style in ((True, "-"), (False, ":")):
        chosen = graph.edges[graph.carries == carries]
        axes.add_collection(
            LineCollection(list(places[chosen]), colors="0.7", linewidths=0.6, linestyles=style, zorder=1)
        )
    sizes = 30 + 270 * graph.output_bytes / max(1, int(graph.output_bytes.max(initial=0)))
    axes.scatter(across, up, s=sizes, c=graph.machine_types % 10, cmap="tab10", vmin=0, vmax=9, zorder=2)
    if graph.num_nodes <= MOST_NAMES:
        for node, name in enumerate(graph.names):
            axes.annotate(name, places[node], xytext=(0, 8), textcoords="offset points", ha="center", fontsize=7)
    axes.set_axis_off()
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise GraphError(f"{path}: the picture cannot be written: {error}") from None


def node_levels(graph: Graph) -> Ints:
    """[n] number of edges on the longest path that ends in each node."""
    levels = [0] * graph.num_nodes
    for node in graph.topological_order.tolist():
        for successor in graph.successor_lists[node]:
            levels[successor] = max(levels[successor], levels[node] + 1)
    return np.array(levels, dtype=np.int64)


def _heights(levels: Ints) -> np.ndarray:
    """[n] where each node stands in its level, centred on 0."""
    counts = np.bincount(levels) if len(levels) else np.zeros(0, dtype=np.int64)
    order = np.argsort(levels, kind="stable")
    inside = np.empty(len(levels))
    inside[order] = np.arange(len(levels)) - np.repeat(np.cumsum(counts) - counts, counts)
    heights: np.ndarray = inside - (counts[levels] - 1) / 2 if len(levels) else inside
    return heights
