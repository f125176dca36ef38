"""Every scheduler of the room: feasible, never below the bound, and the laws that are its own."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from lope.core.errors import UsageError
from lope.graphs import SCHEDULERS
from lope.graphs.graph import Graph
from lope.graphs.schedules.cp_sat import CpSatSchedule
from lope.graphs.schedules.critical_path import CriticalPathSchedule
from lope.graphs.schedules.gumbel import GumbelSchedule
from lope.graphs.schedules.heft import HeftSchedule
from lope.graphs.schedules.list_scheduling import list_schedule
from lope.graphs.schedules.lower_bound import makespan_lower_bound
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.paths import heads, tails
from lope.graphs.schedules.ticks import whole_ticks

QUICK = [name for name in SCHEDULERS if name not in ("cp_sat", "learned")]


def serial_starts(graph: Graph, capacities: tuple[int, ...], order: tuple[int, ...], feasible: Callable) -> list[float]:
    """Place nodes one by one at the first whole time that is feasible (durations are whole)."""
    starts: dict[int, float] = {}
    for v in order:
        time = max((starts[u] + graph.durations[u] for u in graph.predecessors(v).tolist()), default=0.0)
        while True:
            nodes = sorted([*starts, v])
            part = Graph.build(
                [],
                num_nodes=len(nodes),
                durations=graph.durations[nodes],
                resources=graph.resources[nodes],
                machine_types=graph.machine_types[nodes],
            )
            if feasible(part, capacities, [{**starts, v: time}[u] for u in nodes]):
                break
            time += 1.0
        starts[v] = time
    return [starts[v] for v in range(graph.num_nodes)]


def optimum(graph: Graph, capacities: tuple[int, ...], feasible: Callable) -> float:
    """The least makespan: some topological order, placed serially, is optimal (active schedules)."""
    best = np.inf
    for order in itertools.permutations(range(graph.num_nodes)):
        place = {v: k for k, v in enumerate(order)}
        if all(place[before] < place[after] for before, after in graph.edges.tolist()):
            starts = serial_starts(graph, capacities, order, feasible)
            best = min(best, max(starts[v] + graph.durations[v] for v in range(graph.num_nodes)))
    return float(best)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("seed", range(4))
def test_every_quick_scheduler_is_feasible_and_above_the_bound(
    name: str, seed: int, draw: Callable, feasible: Callable
) -> None:
    graph, machines = draw(seed, 30)
    found = SCHEDULERS.make(name).schedule(graph, machines)
    assert feasible(graph, machines.capacities, found.starts.tolist())
    assert found.makespan >= makespan_lower_bound(graph, machines) - 1e-9


@pytest.mark.parametrize("name", QUICK)
def test_every_quick_scheduler_refuses_what_cannot_run(name: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        SCHEDULERS.make(name).schedule(Graph.build([], num_nodes=0), Machines((1,)))
    with pytest.raises(UsageError, match="holds 2 units"):
        SCHEDULERS.make(name).schedule(Graph.build([], num_nodes=1, resources=[2]), Machines((1,)))


@pytest.mark.parametrize("seed", range(5))
def test_cp_sat_is_the_optimum_and_the_bound_is_not_above_it(seed: int, draw: Callable, feasible: Callable) -> None:
    graph, machines = draw(seed, 6)
    least = optimum(graph, machines.capacities, feasible)
    proof = CpSatSchedule(seconds=20).solve(graph, machines)
    assert feasible(graph, machines.capacities, proof.schedule.starts.tolist())
    assert proof.schedule.makespan == pytest.approx(least)
    assert proof.bound == pytest.approx(least)
    assert makespan_lower_bound(graph, machines) <= least + 1e-9


def test_cp_sat_keeps_odd_durations_feasible(feasible: Callable) -> None:
    rng = np.random.default_rng(0)
    graph = Graph.build(
        [(0, 5), (1, 6)], num_nodes=8, durations=rng.random(8) + 0.5, resources=[1, 2, 1, 2, 1, 2, 1, 2]
    )
    proof = CpSatSchedule(seconds=1).solve(graph, Machines((3,)))
    assert feasible(graph, (3,), proof.schedule.starts.tolist())
    assert proof.bound <= proof.schedule.makespan


@pytest.mark.parametrize("seed", range(6))
def test_heft_places_serially_by_upward_rank(seed: int, draw: Callable, feasible: Callable) -> None:
    graph, machines = draw(seed, 9)
    ranks = tails(graph)
    order = tuple(sorted(graph.topological_order.tolist(), key=lambda v: -ranks[v]))
    expected = serial_starts(graph, machines.capacities, order, feasible)
    assert HeftSchedule().schedule(graph, machines).starts.tolist() == expected


def test_heft_fills_a_gap_that_list_scheduling_leaves() -> None:
    # Capacity 2. Node 2 (two units) waits for node 0 until 2; node 3 has one unit and length 3. List scheduling starts
    # it at 0 and so delays node 2 to 3; HEFT, which has placed node 2 at 2 already, puts it after.
    graph = Graph.build([(0, 2)], num_nodes=3, names=["a", "long", "wide"], durations=[2, 3, 4], resources=[1, 1, 2])
    machines = Machines((2,))
    assert list_schedule(graph, machines, [0, 2, 1]).starts.tolist() == [0, 0, 3]
    assert HeftSchedule().schedule(graph, machines).starts.tolist() == [0, 6, 2]


def test_noise_is_nothing_to_a_huge_scale_and_more_samples_are_never_worse(draw: Callable) -> None:
    graph, machines = draw(5, 40)
    sharp = GumbelSchedule(samples=1, scale=1e6).schedule(graph, machines).makespan
    assert sharp == CriticalPathSchedule().schedule(graph, machines).makespan
    by_samples = [GumbelSchedule(samples=n, seed=3).schedule(graph, machines).makespan for n in (1, 4, 16, 64)]
    assert by_samples == sorted(by_samples, reverse=True)


def test_longest_paths_of_a_graph_done_by_hand() -> None:
    graph = Graph.build([(0, 1), (0, 2), (1, 3), (2, 3)], num_nodes=4, durations=[1, 5, 2, 4])
    assert tails(graph).tolist() == [10, 9, 6, 4]
    assert heads(graph).tolist() == [0, 1, 1, 6]


def test_ticks_are_whole_where_decimals_are_short() -> None:
    ticks, size = whole_ticks(np.array([0.1, 0.25, 3.0]))
    assert ticks.tolist() == [10, 25, 300]
    assert size == 0.01
    odd = np.array([np.pi, 1.0])
    assert whole_ticks(odd)[0].tolist() == odd.tolist()


@pytest.mark.parametrize("text", ["gumbel:samples=0", "gumbel:scale=-1", "cp_sat:seconds=0", "best:samples=0", "cpp"])
def test_bad_settings_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        SCHEDULERS.make(text)
