"""Makespans of many priority orders of one graph: by a compiled kernel, or by Python in one or more processes."""

import multiprocessing
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from lope.core.checks import at_least
from lope.core.errors import SettingError
from lope.graphs.compiled import call, resolve_engine, whole
from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.schedules.insertion import insertion_schedule, insertion_starts
from lope.graphs.schedules.list_scheduling import check_permutations, list_schedule, list_starts
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.schedule import Schedule
from lope.graphs.schedules.ticks import whole_ticks

KERNELS = {
    "list": (Path(__file__).with_name("list_schedules.c"), "lope_makespans"),
    "insertion": (Path(__file__).with_name("insertion.c"), "lope_insertion_makespans"),
}


def makespans(
    graph: Graph,
    machines: Machines,
    orders: ArrayLike,
    *,
    decoder: str = "list",
    engine: str = "auto",
    processes: int = 1,
) -> Floats:
    """[num_orders] makespan of the schedule of every row of `orders` ([num_orders, n]).

    decoder     `list` (Graham) or `insertion`
    engine      `compiled` (needs a C compiler; 20 to 100 times as fast), `python`, or `auto`: compiled where there is a
                compiler. Both give the same numbers to the last bit.
    processes   how many Python processes share the rows (engine `python` alone)
    Raises GraphError on a bad order or a node that cannot run, SettingError on a bad setting.
    """
    machines.check(graph)
    check_decoder(decoder)
    at_least("processes", processes, 1)
    rows = check_permutations(graph, orders)
    if resolve_engine(engine) == "compiled":
        return _compiled(graph, machines, rows, decoder)
    if processes == 1 or len(rows) < processes:
        return _by_python(graph, machines, rows, decoder)
    parts = [(graph, machines, part, decoder) for part in np.array_split(rows, processes)]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return np.concatenate(pool.starmap(_by_python, parts))


def decode(graph: Graph, machines: Machines, order: ArrayLike, decoder: str) -> Schedule:
    """The schedule of one order [n] by the decoder of that name."""
    check_decoder(decoder)
    return (list_schedule if decoder == "list" else insertion_schedule)(graph, machines, order)


def check_decoder(decoder: str) -> None:
    """Raise SettingError on an unknown decoder."""
    if decoder not in KERNELS:
        raise SettingError(f"decoder must be {' or '.join(KERNELS)}, not {decoder!r}")


def _compiled(graph: Graph, machines: Machines, rows: Ints, decoder: str) -> Floats:
    ticks, size = whole_ticks(graph.durations)
    found = np.empty(len(rows))
    costs = (whole(graph.resources), whole(graph.machine_types), whole(machines.array))
    edges = (whole(graph.successor_starts), whole(graph.successor_nodes), whole(graph.in_degrees))
    counts = (len(rows), graph.num_nodes, len(machines.capacities))
    call(*KERNELS[decoder], counts, (whole(rows), np.ascontiguousarray(ticks), *costs, *edges, found))
    return found * size


def _by_python(graph: Graph, machines: Machines, rows: Ints, decoder: str) -> Floats:
    ticks, size = whole_ticks(graph.durations)
    rule = list_starts if decoder == "list" else insertion_starts
    return np.array([(rule(graph, machines, row, ticks) + ticks).max() * size for row in rows])
