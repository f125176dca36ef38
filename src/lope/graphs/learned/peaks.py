"""Peak memory of many orders of one graph at once, by the convention of `lope.graphs.memory`."""

import numpy as np

from lope.graphs.graph import Graph, Ints


def peaks(graph: Graph, orders: Ints) -> Ints:
    """[num_orders] the most bytes that each row of `orders` ([num_orders, n], topological) ever holds."""
    num_orders, n = orders.shape
    rows = np.arange(num_orders)[:, None]
    position = np.empty((num_orders, n), dtype=np.int64)
    position[rows, orders] = np.arange(n)
    last = position.copy()
    if len(uses := graph.use_edges):
        starts = np.flatnonzero(np.diff(uses[:, 0], prepend=-1))
        last[:, uses[starts, 0]] = np.maximum.reduceat(position[:, uses[:, 1]], starts, axis=1)
    last[:, graph.kept] = n
    freed = np.bincount(
        (rows * (n + 1) + last).ravel(),
        weights=np.broadcast_to(graph.output_bytes, (num_orders, n)).ravel(),
        minlength=num_orders * (n + 1),
    ).reshape(num_orders, n + 1)[:, :n]
    size = graph.output_bytes[orders]
    held_before = np.cumsum(size - freed.astype(np.int64), axis=1) - size + freed.astype(np.int64)
    found: Ints = (held_before + size + graph.scratch_bytes[orders]).max(axis=1, initial=0)
    return found
