"""Schedule: when every node of a graph starts, and how long the whole takes."""

from dataclasses import dataclass

import numpy as np

from lope.graphs.errors import GraphError
from lope.graphs.graph import Floats, Graph
from lope.graphs.schedules.machines import Machines


@dataclass(frozen=True, eq=False)
class Schedule:
    """`starts[v]` is the time at which node v starts, in the unit of the graph's durations."""

    graph: Graph
    machines: Machines
    starts: Floats

    @property
    def finishes(self) -> Floats:
        """[n] when every node ends."""
        ends: Floats = self.starts + self.graph.durations
        return ends

    @property
    def makespan(self) -> float:
        """When the last node ends."""
        return float(self.finishes.max())

    def check(self, tolerance: float = 1e-6) -> None:
        """Raise GraphError unless every edge is obeyed and no machine type is ever used above its capacity."""
        graph, ends = self.graph, self.finishes
        early = self.starts[graph.edges[:, 1]] < ends[graph.edges[:, 0]] - tolerance
        if early.any():
            before, after = (graph.names[node] for node in graph.edges[early.argmax()])
            raise GraphError(f"{graph.name}: {after!r} starts before {before!r} has ended")
        for kind, capacity in enumerate(self.machines.capacities):
            nodes = np.flatnonzero((graph.machine_types == kind) & (graph.durations > tolerance))
            times = np.concatenate([self.starts[nodes], ends[nodes] - tolerance])
            changes = np.concatenate([graph.resources[nodes], -graph.resources[nodes]])
            used = np.cumsum(changes[np.lexsort((changes, times))])
            if len(used) and used.max() > capacity:
                raise GraphError(f"{graph.name}: machine type {kind} is used {used.max()} deep, it has {capacity}")
