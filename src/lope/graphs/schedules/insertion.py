"""Insertion scheduling of one priority order (the serial scheme of Kolisch 1996; the placement of HEFT).

Among the nodes whose predecessors are all placed, take the one with the highest priority and place it as early as its
predecessors and what is already placed allow. A node may fill a gap before nodes that were placed earlier, and a large
node may reserve its place before small ones that are ready sooner. List scheduling can do neither, so it cannot reach
every optimum where nodes hold large resources (WeCAN, arXiv 2603.23249, theorem 1); some order reaches one here.
"""

import heapq

import numpy as np
from numpy.typing import ArrayLike

from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.schedules.list_scheduling import check_permutations
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.schedule import Schedule
from lope.graphs.schedules.ticks import whole_ticks
from lope.graphs.schedules.usage import Usage


def insertion_schedule(graph: Graph, machines: Machines, order: ArrayLike) -> Schedule:
    """The schedule that `order` ([n] node numbers, highest priority first) leads to; O(n · changes of use).

    Raises GraphError where the graph is empty, a node cannot run on `machines` or `order` is not a permutation.
    """
    machines.check(graph)
    nodes = check_permutations(graph, np.asarray(order)[None])[0]
    ticks, size = whole_ticks(graph.durations)
    return Schedule(graph, machines, insertion_starts(graph, machines, nodes, ticks) * size)


def insertion_starts(graph: Graph, machines: Machines, order: Ints, ticks: Floats) -> Floats:
    """[n] the start of every node, in ticks, for a checked order."""
    nodes = order.tolist()
    rank = {node: place for place, node in enumerate(nodes)}
    lengths, needs, kinds = ticks.tolist(), graph.resources.tolist(), graph.machine_types.tolist()
    usages = [Usage(capacity) for capacity in machines.capacities]
    starts, ready, waiting = [0.0] * len(nodes), [0.0] * len(nodes), graph.in_degrees.tolist()
    eligible = [rank[node] for node in nodes if waiting[node] == 0]
    while eligible:
        node = nodes[heapq.heappop(eligible)]
        usage = usages[kinds[node]]
        starts[node] = usage.earliest(ready[node], lengths[node], needs[node])
        end = starts[node] + lengths[node]
        usage.add(starts[node], end, needs[node])
        for successor in graph.successor_lists[node]:
            ready[successor] = max(ready[successor], end)
            waiting[successor] -= 1
            if waiting[successor] == 0:
                heapq.heappush(eligible, rank[successor])
    return np.array(starts)
