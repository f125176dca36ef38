"""HEFT: upward ranks and insertion (Topcuoglu, Hariri, Wu 2002, IEEE TPDS 13(3)).

Nodes are placed one after another by upward rank, each as early as its predecessors and what is already placed allow; a
node may fill a gap before nodes that were placed earlier, which list scheduling never does. Here every node has one
machine type and messages cost nothing, so the upward rank is the longest path to an end.
"""

from dataclasses import dataclass

import numpy as np

from lope.graphs.graph import Graph
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.paths import tails
from lope.graphs.schedules.schedule import Schedule
from lope.graphs.schedules.scheduler import downwards
from lope.graphs.schedules.ticks import whole_ticks
from lope.graphs.schedules.usage import Usage


@dataclass(frozen=True)
class HeftSchedule:
    """Earliest fit by upward rank."""

    def schedule(self, graph: Graph, machines: Machines) -> Schedule:
        """The schedule; O(n · changes of use), so a second or two for a thousand nodes that share one capacity."""
        machines.check(graph)
        ticks, size = whole_ticks(graph.durations)
        ranks = tails(graph, ticks)
        # Zero durations may tie a node with its own successor: the topological place decides.
        order = graph.topological_order[downwards(ranks[graph.topological_order])]
        usages = [Usage(capacity) for capacity in machines.capacities]
        starts, ends = [0.0] * graph.num_nodes, [0.0] * graph.num_nodes
        lengths = ticks.tolist()
        for node in order.tolist():
            ready = max((ends[other] for other in graph.predecessor_lists[node]), default=0.0)
            usage = usages[int(graph.machine_types[node])]
            starts[node] = usage.earliest(ready, lengths[node], int(graph.resources[node]))
            ends[node] = starts[node] + lengths[node]
            usage.add(starts[node], ends[node], int(graph.resources[node]))
        return Schedule(graph, machines, np.array(starts) * size)
