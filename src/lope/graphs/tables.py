"""The tables of the papers: methods side by side over one set of graphs, mean cost and seconds per graph."""

import time
from dataclasses import dataclass

import numpy as np

from lope.core.errors import SettingError
from lope.graphs import GENERATORS, ORDERS, SCHEDULERS
from lope.graphs.graph import Graph
from lope.graphs.memory import peak_lower_bound, peak_memory
from lope.graphs.schedules.lower_bound import makespan_lower_bound
from lope.graphs.schedules.machines import Machines

FAMILIES = ("jssp", "tpch", "layered")


@dataclass(frozen=True)
class Table:
    """Means over `num_graphs` graphs: makespan (jssp, tpch) or peak bytes (layered), and seconds a graph."""

    family: str
    name: str
    num_graphs: int
    lower_bound: float
    mean: dict[str, float]
    seconds: dict[str, float]
    every: dict[str, list[float]]


def compare(family: str, name: str, methods: list[str], *, data: str | None = None, limit: int | None = None) -> Table:
    """Run every method on every graph of a set (`25x30`, `tpch-50-test`, `1000`), or on the first `limit` of them.

    Methods are parts with settings: schedulers for jssp and tpch, orders for layered. What a method loads on first use
    (torch, weights) is loaded on a graph of one node before the clock starts.
    Raises SettingError on an unknown family or set, UnknownPartError on an unknown method.
    """
    graphs, machines = read_set(family, name, data)
    graphs = graphs[:limit]
    tiny = Graph.build([], num_nodes=1, durations=[1.0], output_bytes=[1])
    every: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    for method in methods:
        part = (SCHEDULERS if machines else ORDERS).make(method)
        _cost(part, tiny, machines and Machines((1,) * len(machines.capacities)))
        started = time.perf_counter()
        every[method] = [_cost(part, graph, machines) for graph in graphs]
        seconds[method] = (time.perf_counter() - started) / len(graphs)
    bounds = [makespan_lower_bound(graph, machines) if machines else peak_lower_bound(graph) for graph in graphs]
    mean = {method: float(np.mean(costs)) for method, costs in every.items()}
    return Table(family, name, len(graphs), float(np.mean(bounds)), mean, seconds, every)


def read_set(family: str, name: str, data: str | None = None) -> tuple[list[Graph], Machines | None]:
    """The graphs of a set, and the machines for those that are scheduled."""
    if family == "jssp":
        size, _, split = name.partition("-")
        counts = size.split("x")
        if len(counts) != 2 or not all(count.isdecimal() for count in counts):
            raise SettingError(f"a jssp set is JOBSxMACHINES or JOBSxMACHINES-train, as 25x30, not {name!r}")
        shops = GENERATORS.part("jssp")(int(counts[0]), int(counts[1]), split or "test")
        return shops.graphs(), shops.machines
    if family == "tpch":
        jobs = GENERATORS.part("tpch")(name, data)
        return jobs.graphs(), jobs.machines
    if family == "layered":
        if not name.isdecimal():
            raise SettingError(f"a layered set is a number of nodes, as 1000, not {name!r}")
        return GENERATORS.part("layered")(int(name)).graphs(), None
    raise SettingError(f"bench families are {', '.join(FAMILIES)}, not {family!r}")


def _cost(part: object, graph: Graph, machines: Machines | None) -> float:
    if machines is None:
        return float(peak_memory(graph, part.order(graph)))  # type: ignore[attr-defined]
    return float(part.schedule(graph, machines).makespan)  # type: ignore[attr-defined]
