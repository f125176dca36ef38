"""List scheduling in the order in which the graph names its nodes: the scheduler that decides nothing."""

from dataclasses import dataclass

import numpy as np

from lope.graphs.graph import Graph
from lope.graphs.schedules.list_scheduling import list_schedule
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.schedule import Schedule


@dataclass(frozen=True)
class AsGivenSchedule:
    """Nodes with smaller numbers first."""

    def schedule(self, graph: Graph, machines: Machines) -> Schedule:
        """The list schedule."""
        return list_schedule(graph, machines, np.arange(graph.num_nodes))
