"""What the network reads about a node of a scheduling problem (after Jeon et al. 2023, appendix F.3).

The paper's are duration, resource, one-hot machine type and the longest paths to and from the node, each over its
maximum. Beside them stand square roots of the skewed ones, work below and above, and the load of the node's own machine
type. The paper's Laplacian positions are left out: TPC-H graphs are many disjoint jobs, whose Laplacians repeat.
"""

import numpy as np
from numpy.typing import NDArray

from lope.graphs.errors import GraphError
from lope.graphs.graph import Bools, Floats, Graph
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.paths import heads, operations_left, tails

NUM_SCALARS = 15


def schedule_features(graph: Graph, machines: Machines, reach: Bools, num_types: int) -> NDArray[np.float32]:
    """[n, 15 + num_types] features; `reach` is [n, n], from u to its descendants. With one type, `num_types` is 0.

    Raises GraphError where `machines` has more types than the network was trained for.
    """
    if len(machines.capacities) > max(num_types, 1):
        raise GraphError(f"these weights know up to {max(num_types, 1)} machine types, not {len(machines.capacities)}")
    kinds, capacity = graph.machine_types, machines.array[graph.machine_types]
    share = graph.resources / capacity
    work: Floats = graph.durations * share
    load = np.bincount(kinds, weights=work, minlength=len(machines.capacities)).astype(np.float64)[kinds]
    tail, head = tails(graph), heads(graph)
    below: Floats = reach @ work
    above: Floats = work @ reach
    columns = [share, graph.resources / max(1, graph.resources.max())]
    columns += [
        unit(column) for column in (graph.durations, work, tail, head, below, above, operations_left(graph), load)
    ]
    columns += [np.sqrt(unit(column)) for column in (graph.durations, work, tail, below)]
    columns += [unit(head + tail)]
    one_hot = np.zeros((graph.num_nodes, num_types))
    if num_types:
        one_hot[np.arange(graph.num_nodes), kinds] = 1.0
    return np.concatenate([np.stack(columns, axis=1), one_hot], axis=1).astype(np.float32)


def unit(values: Floats) -> Floats:
    """Over the maximum; 0 where that is 0."""
    shares: Floats = values / (values.max() or 1.0)
    return shares
