"""No schedule ends before this: the longest path, or the work of the busiest machine type over its capacity."""

import numpy as np

from lope.graphs.graph import Graph
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.paths import heads, tails


def makespan_lower_bound(graph: Graph, machines: Machines) -> float:
    """The larger of max(longest path) and, per machine type, earliest start + Σ duration · resource / capacity + rest.

    "Earliest start" is the least head, "rest" the least tail after any node of the type: no node of it can run outside.
    For TPC-H, where those are 0, this is the bound of the published comparison.
    """
    machines.check(graph)
    before, after = heads(graph), tails(graph) - graph.durations
    bounds = [float((before + graph.durations + after).max())]
    for kind, capacity in enumerate(machines.capacities):
        nodes = np.flatnonzero(graph.machine_types == kind)
        if len(nodes):
            work = float(graph.durations[nodes] @ graph.resources[nodes]) / capacity
            bounds.append(float(before[nodes].min()) + work + float(after[nodes].min()))
    return max(bounds)
