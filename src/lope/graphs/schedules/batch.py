"""Makespans of many priority orders of one graph: by a compiled kernel, or by Python in one or more processes."""

import multiprocessing
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from lope.core.checks import at_least
from lope.graphs.compiled import call, resolve_engine, whole
from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.schedules.list_scheduling import check_permutations, list_schedule
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.ticks import whole_ticks

SOURCE = Path(__file__).with_name("list_schedules.c")


def makespans(
    graph: Graph, machines: Machines, orders: ArrayLike, *, engine: str = "auto", processes: int = 1
) -> Floats:
    """[num_orders] makespan of the list schedule of every row of `orders` ([num_orders, n]).

    engine      `compiled` (needs a C compiler; 20 to 50 times as fast), `python`, or `auto`: compiled where there is a
                compiler. Both give the same numbers to the last bit.
    processes   how many Python processes share the rows (engine `python` alone)
    Raises GraphError on a bad order or a node that cannot run, SettingError on a bad setting.
    """
    machines.check(graph)
    at_least("processes", processes, 1)
    rows = check_permutations(graph, orders)
    if resolve_engine(engine) == "compiled":
        return _compiled(graph, machines, rows)
    if processes == 1 or len(rows) < processes:
        return _by_python(graph, machines, rows)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        parts = pool.starmap(_by_python, [(graph, machines, part) for part in np.array_split(rows, processes)])
    return np.concatenate(parts)


def _compiled(graph: Graph, machines: Machines, rows: Ints) -> Floats:
    ticks, size = whole_ticks(graph.durations)
    found = np.empty(len(rows))
    costs = (whole(graph.resources), whole(graph.machine_types), whole(machines.array))
    edges = (whole(graph.successor_starts), whole(graph.successor_nodes), whole(graph.in_degrees))
    counts = (len(rows), graph.num_nodes, len(machines.capacities))
    call(SOURCE, "lope_makespans", counts, (whole(rows), np.ascontiguousarray(ticks), *costs, *edges, found))
    return found * size


def _by_python(graph: Graph, machines: Machines, rows: Ints) -> Floats:
    return np.array([list_schedule(graph, machines, row).makespan for row in rows])
