"""From one number per node to an order: the hook through which learned priorities become orders."""

import heapq

import numpy as np
from numpy.typing import ArrayLike

from lope.graphs.errors import GraphError
from lope.graphs.graph import Floats, Graph, Ints


def order_by_priority(graph: Graph, priorities: ArrayLike) -> Ints:
    """Run, at each step, the ready node of highest priority [n]; ties go to the lower number. O(e + n log n).

    Raises GraphError as `check_priorities` does.
    """
    keys = (-check_priorities(graph, priorities)).tolist()
    waiting = graph.in_degrees.tolist()
    ready = [(keys[node], node) for node, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, node = heapq.heappop(ready)
        order.append(node)
        for successor in graph.successor_lists[node]:
            waiting[successor] -= 1
            if waiting[successor] == 0:
                heapq.heappush(ready, (keys[successor], successor))
    return np.array(order, dtype=np.int64)


def check_priorities(graph: Graph, priorities: ArrayLike) -> Floats:
    """`priorities` as [n] floats. Raises GraphError unless there is one number that is not NaN for each node."""
    wanted = np.asarray(priorities, dtype=np.float64)
    if wanted.shape != (graph.num_nodes,) or np.isnan(wanted).any():
        raise GraphError(f"{graph.name}: priorities must be {graph.num_nodes} numbers, one per node")
    return wanted
