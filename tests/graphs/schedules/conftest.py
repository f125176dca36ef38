"""Small random problems, a slow scheduler and a feasibility check that share no code with lope."""

from collections.abc import Callable

import numpy as np
import pytest

from lope.graphs.graph import Graph
from lope.graphs.schedules.machines import Machines

Draw = Callable[[int, int], tuple[Graph, Machines]]


def feasible(graph: Graph, capacities: tuple[int, ...], starts: list[float], slack: float = 1e-6) -> bool:
    """Whether starts obey every edge, and no machine type holds more than it has just after any start."""
    ends = [starts[v] + graph.durations[v] for v in range(graph.num_nodes)]
    if min(starts) < 0 or any(starts[after] < ends[before] - slack for before, after in graph.edges.tolist()):
        return False
    for moment in starts:
        used = [0] * len(capacities)
        for v in range(graph.num_nodes):
            if starts[v] <= moment + slack and ends[v] > moment + 2 * slack:
                used[graph.machine_types[v]] += int(graph.resources[v])
        if any(use > capacity for use, capacity in zip(used, capacities, strict=True)):
            return False
    return True


def slow_list_schedule(graph: Graph, capacities: tuple[int, ...], order: list[int]) -> list[int]:
    """Graham's rule, one unit of time after another; durations are whole numbers of at least 1."""
    starts: dict[int, int] = {}
    time = 0
    while len(starts) < graph.num_nodes:
        running = [v for v in starts if starts[v] + graph.durations[v] > time]
        ended = {v for v in starts if v not in running}
        for v in order:
            if v in starts or not {int(u) for u in graph.predecessors(v)} <= ended:
                continue
            kind = graph.machine_types[v]
            used = sum(int(graph.resources[u]) for u in running if graph.machine_types[u] == kind)
            if used + graph.resources[v] <= capacities[kind]:
                starts[v] = time
                running.append(v)
        time += 1
    return [starts[v] for v in range(graph.num_nodes)]


@pytest.fixture(name="feasible")
def feasible_fixture() -> Callable[..., bool]:
    return feasible


@pytest.fixture(name="slow_list_schedule")
def slow_list_schedule_fixture() -> Callable[..., list[int]]:
    return slow_list_schedule


@pytest.fixture
def draw() -> Draw:
    """A random problem of n nodes: three machine types, resources up to the capacity, edges along a random order."""

    def problem(seed: int, n: int) -> tuple[Graph, Machines]:
        rng = np.random.default_rng(seed)
        capacities = np.array([1, 3, 7])
        kinds = rng.integers(0, 3, n)
        shuffled = rng.permutation(n)
        edges = [(shuffled[i], shuffled[j]) for i in range(n) for j in range(i + 1, n) if rng.random() < 2 / n]
        graph = Graph.build(
            edges,
            num_nodes=n,
            durations=rng.integers(1, 9, n),
            resources=rng.integers(1, capacities[kinds] + 1),
            machine_types=kinds,
        )
        return graph, Machines((1, 3, 7))

    return problem
