"""The least peak by constraint programming (OR-tools CP-SAT), for graphs of about 60 nodes, with a time limit."""

import math
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from lope.core.checks import above, at_least
from lope.graphs.graph import Graph, Ints
from lope.graphs.memory import last_uses, memory_timeline, peak_lower_bound
from lope.graphs.orders.beam import beam_order


@dataclass(frozen=True)
class CpSatSolution:
    """An order [n], its peak in bytes, and a peak below which the solver proved that no order goes."""

    order: Ints
    peak: int
    proven: int


@dataclass(frozen=True)
class CpSatOrder:
    """A position for every node; a result holds its bytes from its position to that of its last consumer.

    Starts from what a beam of 16 finds, so it is never worse than that.
    """

    seconds: float = 60.0
    workers: int = 1

    def __post_init__(self) -> None:
        above("seconds", self.seconds, 0)
        at_least("workers", self.workers, 1)

    def order(self, graph: Graph) -> Ints:
        """[n] the best order found when the time is up, or the proven best."""
        return self.solve(graph).order

    def solve(self, graph: Graph) -> CpSatSolution:
        """The best order found when the time is up, and what is proven about it."""
        hint = beam_order(graph, 16)
        known, bound = memory_timeline(graph, hint).peak, peak_lower_bound(graph)
        if known == bound:
            return CpSatSolution(hint, known, bound)
        unit = math.gcd(*graph.output_bytes.tolist(), *graph.scratch_bytes.tolist())
        model, positions, peak = _model(graph, hint, unit, bound, known)
        model.minimize(peak)
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = self.seconds
        solver.parameters.num_workers = self.workers
        status = solver.solve(model)
        proven = max(bound, math.ceil(solver.best_objective_bound) * unit)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return CpSatSolution(hint, known, min(proven, known))
        order = np.argsort([solver.value(position) for position in positions], kind="stable").astype(np.int64)
        found = memory_timeline(graph, order).peak
        return CpSatSolution(order, found, min(proven, found))


def _model(
    graph: Graph, hint: Ints, unit: int, bound: int, known: int
) -> tuple[cp_model.CpModel, list[cp_model.IntVar], cp_model.IntVar]:
    """The model in multiples of `unit` bytes, hinted with an order of peak `known`."""
    model = cp_model.CpModel()
    n = graph.num_nodes
    hinted = np.empty(n, dtype=np.int64)
    hinted[hint] = np.arange(n)
    ends_hinted = np.minimum(last_uses(graph, hint) + 1, n)
    positions = [model.new_int_var(0, n - 1, f"position_{v}") for v in range(n)]
    model.add_all_different(positions)
    for first, then in graph.edges.tolist():
        model.add(positions[first] < positions[then])
    users: list[list[int]] = [[] for _ in range(n)]
    for first, then in graph.use_edges.tolist():
        users[first].append(then)
    intervals, demands = [], []
    for v in range(n):
        model.add_hint(positions[v], int(hinted[v]))
        if size := int(graph.output_bytes[v]) // unit:
            end: cp_model.IntVar | int = n
            if not graph.kept[v]:
                end = model.new_int_var(1, n, f"end_{v}")
                model.add_hint(end, int(ends_hinted[v]))
                for other in [v, *users[v]]:
                    model.add(end > positions[other])
            length = model.new_int_var(1, n, f"length_{v}")
            model.add_hint(length, int(ends_hinted[v] - hinted[v]))
            intervals.append(model.new_interval_var(positions[v], length, end, f"held_{v}"))
            demands.append(size)
        if scratch := int(graph.scratch_bytes[v]) // unit:
            intervals.append(model.new_fixed_size_interval_var(positions[v], 1, f"scratch_{v}"))
            demands.append(scratch)
    peak = model.new_int_var(bound // unit, known // unit, "peak")
    model.add_hint(peak, known // unit)
    model.add_cumulative(intervals, demands, peak)
    return model, positions, peak
