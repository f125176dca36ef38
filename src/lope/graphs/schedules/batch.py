"""Makespans of many priority orders of one graph: by the compiled kernel, or by Python in one or more processes."""

import multiprocessing

import numpy as np
from numpy.typing import ArrayLike

from lope.core.checks import at_least
from lope.core.errors import SettingError
from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.schedules.kernel import compiled_makespans, compiler
from lope.graphs.schedules.list_scheduling import check_permutations, list_schedule
from lope.graphs.schedules.machines import Machines


def makespans(
    graph: Graph, machines: Machines, orders: ArrayLike, *, engine: str = "auto", processes: int = 1
) -> Floats:
    """[num_orders] makespan of the list schedule of every row of `orders` ([num_orders, n]).

    engine      `compiled` (needs a C compiler), `python`, or `auto`: compiled where there is a compiler. Both give the
                same numbers to the last bit.
    processes   how many Python processes share the rows (engine `python` alone)
    Raises GraphError on a bad order or a node that cannot run, SettingError on a bad setting.
    """
    machines.check(graph)
    at_least("processes", processes, 1)
    rows = check_permutations(graph, orders)
    if resolve_engine(engine) == "compiled":
        return compiled_makespans(graph, machines, rows)
    if processes == 1 or len(rows) < processes:
        return _by_python(graph, machines, rows)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        parts = pool.starmap(_by_python, [(graph, machines, part) for part in np.array_split(rows, processes)])
    return np.concatenate(parts)


def resolve_engine(engine: str) -> str:
    """`compiled` or `python`. Raises SettingError on any other name."""
    if engine not in ("auto", "compiled", "python"):
        raise SettingError(f"engine must be auto, compiled or python, not {engine!r}")
    if engine != "auto":
        return engine
    return "compiled" if compiler() else "python"


def _by_python(graph: Graph, machines: Machines, rows: Ints) -> Floats:
    return np.array([list_schedule(graph, machines, row).makespan for row in rows])
