"""List scheduling follows Graham's rule: equal to a slow simulation that knows nothing of heaps, bits or ticks."""

from collections.abc import Callable

import numpy as np
import pytest

from lope.core.errors import UsageError
from lope.graphs.compiled import compiler
from lope.graphs.graph import Graph
from lope.graphs.schedules.batch import makespans
from lope.graphs.schedules.list_scheduling import list_schedule
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.schedule import Schedule

needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler on this machine")


@pytest.mark.parametrize("seed", range(25))
def test_equals_the_slow_simulation_and_is_feasible(
    seed: int, draw: Callable, slow_list_schedule: Callable, feasible: Callable
) -> None:
    graph, machines = draw(seed, 14)
    order = np.random.default_rng(seed).permutation(14)
    found = list_schedule(graph, machines, order)
    assert found.starts.tolist() == slow_list_schedule(graph, machines.capacities, order.tolist())
    assert feasible(graph, machines.capacities, found.starts.tolist())
    found.check()


def test_a_node_that_does_not_fit_is_skipped_not_waited_for() -> None:
    # Capacity 2: node 0 takes one unit until 4; node 1 (first of the waiting) needs two, node 2 needs one.
    graph = Graph.build([], num_nodes=3, durations=[4, 1, 2], resources=[1, 2, 1])
    assert list_schedule(graph, Machines((2,)), [0, 1, 2]).starts.tolist() == [0, 4, 0]


def test_decimal_durations_meet_exactly() -> None:
    # 0.1 + 0.2 and 0.3 end together, so the node that waits for both machines' units starts once, at 0.3.
    graph = Graph.build([(0, 1)], num_nodes=4, durations=[0.1, 0.2, 0.3, 1.0], resources=[1, 1, 1, 2])
    found = list_schedule(graph, Machines((2,)), [3, 2, 0, 1][::-1])
    assert found.starts[3] == pytest.approx(0.3, abs=1e-15)
    assert found.makespan == pytest.approx(1.3, abs=1e-12)


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [0, 1, 3], [0, 1, 2, 2]])
def test_an_order_that_is_no_permutation_is_refused(order: list[int]) -> None:
    graph = Graph.build([], num_nodes=3, durations=[1, 1, 1])
    with pytest.raises(UsageError, match="each of the 3 nodes once"):
        list_schedule(graph, Machines((1,)), order)


@needs_compiler
@pytest.mark.parametrize("decoder", ["list", "insertion"])
@pytest.mark.parametrize("seed", range(5))
def test_compiled_and_python_agree_to_the_last_bit(seed: int, decoder: str, draw: Callable) -> None:
    graph, machines = draw(seed, 150)
    rng = np.random.default_rng(seed)
    odd = Graph.build(
        graph.edges,
        num_nodes=150,
        durations=rng.random(150) * rng.integers(0, 2, 150),  # no short decimals, and zeros
        resources=graph.resources,
        machine_types=graph.machine_types,
    )
    orders = np.array([rng.permutation(150) for _ in range(20)])
    decimal = Graph.build(
        graph.edges,
        num_nodes=150,
        durations=rng.integers(0, 9999, 150) / 1000,
        resources=graph.resources,
        machine_types=graph.machine_types,
    )
    for case in (graph, odd, decimal):
        compiled = makespans(case, machines, orders, decoder=decoder, engine="compiled")
        assert compiled.tolist() == makespans(case, machines, orders, decoder=decoder, engine="python").tolist()


def test_processes_change_nothing(draw: Callable) -> None:
    graph, machines = draw(3, 20)
    orders = np.array([np.random.default_rng(k).permutation(20) for k in range(5)])
    alone = makespans(graph, machines, orders, engine="python")
    assert makespans(graph, machines, orders, engine="python", processes=2).tolist() == alone.tolist()


def test_an_unknown_engine_is_refused(draw: Callable) -> None:
    graph, machines = draw(3, 5)
    with pytest.raises(UsageError, match="auto, compiled or python"):
        makespans(graph, machines, [range(5)], engine="gpu")
    with pytest.raises(UsageError, match="list or insertion"):
        makespans(graph, machines, [range(5)], decoder="random")


class TestMutants:
    """What must be caught: a scheduler without capacities, one that waits, and one that walks the wrong way."""

    def test_a_scheduler_that_ignores_capacity_is_refused(self, draw: Callable, feasible: Callable) -> None:
        graph, machines = draw(0, 14)
        free = list_schedule(graph, Machines((10**6,) * 3), range(14))
        assert not feasible(graph, machines.capacities, free.starts.tolist())
        with pytest.raises(UsageError, match="is used"):
            Schedule(graph, machines, free.starts).check()

    def test_a_scheduler_that_ignores_edges_is_refused(self, draw: Callable, feasible: Callable) -> None:
        graph, machines = draw(0, 14)
        loose = Graph.build(
            [], num_nodes=14, durations=graph.durations, resources=graph.resources, machine_types=graph.machine_types
        )
        starts = list_schedule(loose, machines, range(14)).starts
        assert not feasible(graph, machines.capacities, starts.tolist())
        with pytest.raises(UsageError, match="starts before"):
            Schedule(graph, machines, starts).check()

    def test_the_reversed_order_is_another_schedule(self, draw: Callable, slow_list_schedule: Callable) -> None:
        graph, machines = draw(1, 14)
        order = list(range(14))
        wrong = list_schedule(graph, machines, order[::-1]).starts.tolist()
        assert wrong != slow_list_schedule(graph, machines.capacities, order)
