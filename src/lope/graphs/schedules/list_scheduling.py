"""List scheduling of one priority order (Graham 1969; Jeon et al. 2023, openreview WL8FlAugqQ, appendix A).

At each event time, walk the ready nodes from the highest priority down and start every one that fits what is left of
its machine type; a node that does not fit is skipped, not waited for. Then go to the next finish time. The order may be
any permutation: precedence is kept by readiness, not by the order.
"""

import heapq
from bisect import insort

import numpy as np
from numpy.typing import ArrayLike

from lope.graphs.errors import GraphError
from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.schedule import Schedule
from lope.graphs.schedules.ticks import whole_ticks


def list_schedule(graph: Graph, machines: Machines, order: ArrayLike) -> Schedule:
    """The schedule that `order` ([n] node numbers, highest priority first) leads to; O(events · ready nodes).

    Raises GraphError where the graph is empty, a node cannot run on `machines` or `order` is not a permutation.
    """
    machines.check(graph)
    nodes = check_permutations(graph, np.asarray(order)[None])[0]
    ticks, size = whole_ticks(graph.durations)
    return Schedule(graph, machines, list_starts(graph, machines, nodes, ticks) * size)


def check_permutations(graph: Graph, orders: ArrayLike) -> Ints:
    """`orders` as [num_orders, n]. Raises GraphError unless each row has every node of the graph once."""
    found = np.asarray(orders, dtype=np.int64)
    if found.ndim != 2 or found.shape[1] != graph.num_nodes:
        raise GraphError(f"{graph.name}: a priority order must name each of the {graph.num_nodes} nodes once")
    if (np.sort(found, axis=1) != np.arange(graph.num_nodes)).any():
        raise GraphError(f"{graph.name}: a priority order must name each of the {graph.num_nodes} nodes once")
    return found


def list_starts(graph: Graph, machines: Machines, order: Ints, ticks: Floats) -> Floats:
    """[n] the start of every node, in ticks, for a checked order. One sorted list of ready ranks per machine type."""
    nodes, lengths = order.tolist(), ticks.tolist()
    rank = {node: place for place, node in enumerate(nodes)}
    needs, kinds = graph.resources.tolist(), graph.machine_types.tolist()
    waiting, successors = graph.in_degrees.tolist(), graph.successor_lists
    ready: list[list[int]] = [[] for _ in machines.capacities]
    for place, node in enumerate(nodes):
        if waiting[node] == 0:
            ready[kinds[node]].append(place)
    free, now = list(machines.capacities), 0.0
    starts = [0.0] * len(nodes)
    running: list[tuple[float, int]] = []
    while True:
        for kind, places in enumerate(ready):
            skipped = []
            for place in places:
                node = nodes[place]
                if needs[node] > free[kind]:
                    skipped.append(place)
                    continue
                free[kind] -= needs[node]
                starts[node] = now
                heapq.heappush(running, (now + lengths[node], node))
            ready[kind] = skipped
        if not running:
            return np.array(starts)
        now = running[0][0]
        while running and running[0][0] == now:
            node = heapq.heappop(running)[1]
            free[kinds[node]] += needs[node]
            for successor in successors[node]:
                waiting[successor] -= 1
                if waiting[successor] == 0:
                    insort(ready[kinds[successor]], rank[successor])
