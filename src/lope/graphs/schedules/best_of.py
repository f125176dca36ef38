"""Best of all: run every quick scheduler, keep the shortest schedule."""

from dataclasses import dataclass

from lope.core.checks import at_least
from lope.graphs.graph import Graph
from lope.graphs.schedules.critical_path import CriticalPathSchedule
from lope.graphs.schedules.gumbel import GumbelSchedule
from lope.graphs.schedules.heft import HeftSchedule
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.most_operations import MostOperationsSchedule
from lope.graphs.schedules.schedule import Schedule
from lope.graphs.schedules.scheduler import Scheduler
from lope.graphs.schedules.shortest import ShortestSchedule


@dataclass(frozen=True)
class BestOfSchedule:
    """Critical path, shortest, most operations, HEFT, and `samples` noisy critical paths by either decoder."""

    samples: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("samples", self.samples, 1)

    def schedule(self, graph: Graph, machines: Machines) -> Schedule:
        """The schedule with the least makespan; of equal ones the first."""
        rules: list[Scheduler] = [CriticalPathSchedule(), ShortestSchedule(), MostOperationsSchedule(), HeftSchedule()]
        rules.append(GumbelSchedule(self.samples, seed=self.seed))
        rules.append(GumbelSchedule(self.samples, scale=50.0, decoder="insertion", seed=self.seed))
        found = [rule.schedule(graph, machines) for rule in rules]
        return min(found, key=lambda schedule: schedule.makespan)
