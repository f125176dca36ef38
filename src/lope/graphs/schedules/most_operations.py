"""Most operations remaining first (Jeon et al. 2023, baseline MOPNR)."""

from dataclasses import dataclass

from lope.graphs.graph import Graph
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.paths import operations_left
from lope.graphs.schedules.schedule import Schedule
from lope.graphs.schedules.scheduler import by_priority


@dataclass(frozen=True)
class MostOperationsSchedule:
    """Priority = number of nodes on the longest path from the node to an end."""

    def schedule(self, graph: Graph, machines: Machines) -> Schedule:
        """The list schedule."""
        return by_priority(graph, machines, operations_left(graph))
