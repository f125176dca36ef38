"""What a scheduler is: frozen settings, and a rule that says when every node of a graph starts."""

from typing import Protocol

import numpy as np

from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.schedules.list_scheduling import list_schedule
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.schedule import Schedule


class Scheduler(Protocol):
    """A part of the room `schedulers`."""

    def schedule(self, graph: Graph, machines: Machines) -> Schedule:
        """A schedule that obeys every edge and capacity. Raises GraphError where a node cannot run on `machines`."""
        ...


def by_priority(graph: Graph, machines: Machines, priorities: Floats) -> Schedule:
    """List scheduling by priorities [n], highest first; ties go to the smaller node number."""
    return list_schedule(graph, machines, downwards(priorities))


def downwards(priorities: Floats) -> Ints:
    """[n] nodes from the highest priority to the lowest; ties go to the smaller node number."""
    order: Ints = np.argsort(-priorities, kind="stable")
    return order
