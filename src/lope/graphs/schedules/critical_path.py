"""Critical path first: the node with the longest path to an end goes first (Jeon et al. 2023, baseline CP)."""

from dataclasses import dataclass

from lope.graphs.graph import Graph
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.paths import tails
from lope.graphs.schedules.schedule import Schedule
from lope.graphs.schedules.scheduler import by_priority


@dataclass(frozen=True)
class CriticalPathSchedule:
    """Priority = duration of the longest path from the node to an end, the node included."""

    def schedule(self, graph: Graph, machines: Machines) -> Schedule:
        """The list schedule."""
        return by_priority(graph, machines, tails(graph))
