"""Shortest processing time first (Jeon et al. 2023, baseline SPT)."""

from dataclasses import dataclass

from lope.graphs.graph import Graph
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.schedule import Schedule
from lope.graphs.schedules.scheduler import by_priority


@dataclass(frozen=True)
class ShortestSchedule:
    """Priority = minus the duration."""

    def schedule(self, graph: Graph, machines: Machines) -> Schedule:
        """The list schedule."""
        return by_priority(graph, machines, -graph.durations)
