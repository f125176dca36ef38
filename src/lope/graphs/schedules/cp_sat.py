"""The least makespan by constraint programming (OR-tools CP-SAT), hinted with the best heuristic, with a time limit."""

from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from lope.core.checks import above, at_least
from lope.core.errors import RunError
from lope.graphs.graph import Graph
from lope.graphs.schedules.best_of import BestOfSchedule
from lope.graphs.schedules.lower_bound import makespan_lower_bound
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.schedule import Schedule
from lope.graphs.schedules.ticks import whole_ticks


@dataclass(frozen=True)
class Proof:
    """A schedule, and a makespan below which the solver proved that none goes."""

    schedule: Schedule
    bound: float


@dataclass(frozen=True)
class CpSatSchedule:
    """Start variables, one interval per node, one `cumulative` per machine type (Jeon et al. 2023, appendix F.5).

    Starts from what `best` finds with `hint_samples` samples, and is never worse than that.
    """

    seconds: float = 10.0
    workers: int = 1
    hint_samples: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        above("seconds", self.seconds, 0)
        at_least("workers", self.workers, 1)
        at_least("hint_samples", self.hint_samples, 1)

    def schedule(self, graph: Graph, machines: Machines) -> Schedule:
        """The best schedule found when the time is up, or a proven best one."""
        return self.solve(graph, machines).schedule

    def solve(self, graph: Graph, machines: Machines) -> Proof:
        """The best schedule found when the time is up, and what is proven about it.

        Durations that are no short decimals are rounded up to millionths of the longest path before solving, so the
        schedule stays feasible.
        """
        hint = BestOfSchedule(self.hint_samples, seed=self.seed).schedule(graph, machines)
        ticks, size = _whole(graph, hint.makespan)
        bound = makespan_lower_bound(graph, machines)
        if hint.makespan <= bound:
            return Proof(hint, bound)
        model, starts = _model(graph, machines, hint, ticks, size, bound)
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = self.seconds
        solver.parameters.num_workers = self.workers
        solver.parameters.random_seed = self.seed
        status = solver.solve(model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Proof(hint, bound)
        found = Schedule(graph, machines, np.array([solver.value(start) for start in starts]) * size)
        exact = size * ticks.sum() == graph.durations.sum()
        proven = max(bound, solver.best_objective_bound * size) if exact else bound
        best = min(found, hint, key=lambda schedule: schedule.makespan)
        return Proof(best, min(proven, best.makespan))


def _whole(graph: Graph, horizon: float) -> tuple[np.ndarray, float]:
    """Durations in whole ticks [n] and the length of a tick."""
    ticks, size = whole_ticks(graph.durations)
    if (ticks != np.floor(ticks)).any():
        size = horizon / 1e6
        ticks = np.ceil(graph.durations / size)
    if ticks.sum() >= 2**50:
        raise RunError(f"{graph.name}: durations have too many digits for CP-SAT")
    return ticks.astype(np.int64), size


def _model(
    graph: Graph, machines: Machines, hint: Schedule, ticks: np.ndarray, size: float, bound: float
) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
    """The model in ticks. The hint's starts are rounded down; a repaired hint is still a start."""
    model = cp_model.CpModel()
    horizon = int(np.ceil(hint.makespan / size)) + graph.num_nodes
    starts = [model.new_int_var(0, horizon, f"start_{v}") for v in range(graph.num_nodes)]
    durations = ticks.tolist()
    intervals = [model.new_fixed_size_interval_var(starts[v], durations[v], f"run_{v}") for v in range(len(starts))]
    for before, after in graph.edges.tolist():
        model.add(starts[after] >= starts[before] + durations[before])
    for kind, capacity in enumerate(machines.capacities):
        nodes = np.flatnonzero((graph.machine_types == kind) & (ticks > 0)).tolist()
        if capacity == 1 and all(graph.resources[nodes] == 1):
            model.add_no_overlap([intervals[v] for v in nodes])
        else:
            model.add_cumulative([intervals[v] for v in nodes], [int(graph.resources[v]) for v in nodes], capacity)
    makespan = model.new_int_var(int(bound / size), horizon, "makespan")
    for v in range(graph.num_nodes):
        model.add(makespan >= starts[v] + durations[v])
        model.add_hint(starts[v], round(hint.starts[v] / size))
    model.add_hint(makespan, round(hint.makespan / size))
    model.minimize(makespan)
    return model, starts
