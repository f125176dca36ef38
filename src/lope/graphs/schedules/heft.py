"""HEFT: upward ranks and insertion (Topcuoglu, Hariri, Wu 2002, IEEE TPDS 13(3)).

Here every node has one machine type and messages cost nothing, so the upward rank is the longest path to an end.
"""

from dataclasses import dataclass

from lope.graphs.graph import Graph
from lope.graphs.schedules.insertion import insertion_schedule
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.paths import tails
from lope.graphs.schedules.schedule import Schedule
from lope.graphs.schedules.scheduler import downwards


@dataclass(frozen=True)
class HeftSchedule:
    """Earliest fit by critical path."""

    def schedule(self, graph: Graph, machines: Machines) -> Schedule:
        """The insertion schedule."""
        return insertion_schedule(graph, machines, downwards(tails(graph)))
