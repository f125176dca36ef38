"""What the network reads about a node whose order decides peak memory."""

import numpy as np
from numpy.typing import NDArray

from lope.graphs.graph import Bools, Graph
from lope.graphs.learned.features import unit
from lope.graphs.schedules.paths import heads, tails

NUM_MEMORY_FEATURES = 16


def memory_features(graph: Graph, reach: Bools, known_order: NDArray[np.int64]) -> NDArray[np.float32]:
    """[n, 16] features; `reach` is [n, n], from u to its descendants, `known_order` [n] what a heuristic found.

    Sizes (result, scratch, inputs, inputs that nobody else uses, growth), degrees, depth and height in steps, the sizes
    above and below, the place in the known order; each over its maximum.
    """
    n, sizes = graph.num_nodes, graph.output_bytes.astype(np.float64)
    before, after = graph.use_edges[:, 0], graph.use_edges[:, 1]
    users = np.bincount(before, minlength=n)
    inputs = np.bincount(after, weights=sizes[before], minlength=n).astype(np.float64)
    sole = sizes[before] * ((users[before] == 1) & ~graph.kept[before])
    freed = np.bincount(after, weights=sole, minlength=n).astype(np.float64)
    shared = np.where(graph.kept[before], 0.0, sizes[before] / users[before])
    freed_share = np.bincount(after, weights=shared, minlength=n).astype(np.float64)
    ones = np.ones(n)
    height = tails(graph, ones)
    depth = heads(graph, ones) + 1.0
    place = np.empty(n)
    place[known_order] = np.arange(n) / max(1, n - 1)
    above, below = (reach.T @ sizes), (reach @ sizes)
    columns = [unit(column) for column in (sizes, graph.scratch_bytes.astype(np.float64), inputs, freed, freed_share)]
    largest = max(1.0, float(sizes.max(initial=0.0)))
    columns += [(sizes - freed_share) / largest, (sizes - freed) / largest]
    columns += [unit(graph.in_degrees.astype(np.float64)), unit(graph.out_degrees.astype(np.float64))]
    columns += [unit(depth), unit(height), unit(depth + height), unit(above), unit(below)]
    columns += [place, graph.kept.astype(np.float64)]
    return np.stack(columns, axis=1).astype(np.float32)
