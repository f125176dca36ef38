"""Machines say what cannot run, in one line that names the node."""

import pytest

from lope.core.errors import UsageError
from lope.graphs.graph import Graph
from lope.graphs.schedules.machines import Machines


def test_capacities_are_read_from_text() -> None:
    assert Machines.read("1,1,4") == Machines((1, 1, 4))


@pytest.mark.parametrize("text", ["", "a", "1,,2", "1.5", "0", "-1", "1,0"])
def test_text_that_is_no_capacity_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="machines"):
        Machines.read(text)


def test_no_type_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one"):
        Machines(())


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (Graph.build([], num_nodes=0), "empty"),
        (Graph.build([], names=["a", "b"], durations=[1, 1], resources=[1, 5]), "'b' holds 5 units"),
        (Graph.build([], names=["a"], durations=[1], machine_types=[2]), "'a' needs machine type 2"),
    ],
)
def test_what_cannot_run_is_named(graph: Graph, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Machines((4, 4)).check(graph)
