"""A graph as a picture: layers from left to right, dots as large as their results."""

from pathlib import Path

import networkx
import numpy as np
from matplotlib.figure import Figure

from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph, Ints

MOST_NODES = 5_000


def write_png(graph: Graph, path: Path) -> None:
    """Draw a graph of at most 5,000 nodes. Raises GraphError for a larger one, or where the file can't be written."""
    if graph.num_nodes > MOST_NODES:
        raise GraphError(f"{graph.name}: {graph.num_nodes} nodes make no readable picture; write a .dot file instead")
    levels = node_levels(graph)
    drawn = networkx.DiGraph()
    drawn.add_nodes_from((node, {"subset": int(levels[node])}) for node in range(graph.num_nodes))
    drawn.add_edges_from(graph.edges.tolist())
    places = networkx.multipartite_layout(drawn) if graph.num_nodes else {}
    figure = Figure(figsize=(min(40.0, 4 + 0.4 * (levels.max(initial=0) + 1)), 7), layout="constrained")
    axes = figure.add_subplot()
    sizes = 30 + 270 * graph.output_bytes / max(1, int(graph.output_bytes.max(initial=0)))
    few = graph.num_nodes <= 60
    networkx.draw_networkx(
        drawn,
        places,
        ax=axes,
        arrows=graph.num_nodes <= 500,
        node_size=sizes.tolist(),
        node_color=graph.machine_types.tolist(),
        cmap="tab10",
        width=0.6,
        with_labels=few,
        labels=dict(enumerate(graph.names)) if few else None,
        font_size=7,
    )
    axes.set_title(graph.name)
    axes.axis("off")
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
