"""The picture of a schedule: bars of one machine type never overlap, and the file is what its suffix says."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lope.core.errors import UsageError
from lope.graphs.schedules.gantt import draw_gantt, lanes
from lope.graphs.schedules.list_scheduling import list_schedule


def test_bars_never_overlap(draw: Callable) -> None:
    graph, machines = draw(2, 40)
    found = list_schedule(graph, machines, range(40))
    nodes = np.flatnonzero(graph.machine_types == 2)
    base = lanes(found, nodes)
    top = base + graph.resources[nodes]
    for one in range(len(nodes)):
        for other in range(one):
            apart_in_time = (
                found.starts[nodes[one]] >= found.finishes[nodes[other]]
                or found.starts[nodes[other]] >= found.finishes[nodes[one]]
            )
            assert apart_in_time or base[one] >= top[other] or base[other] >= top[one]


def test_the_file_is_a_picture(draw: Callable, tmp_path: Path) -> None:
    graph, machines = draw(2, 12)
    found = list_schedule(graph, machines, range(12))
    draw_gantt(found, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with pytest.raises(UsageError, match=r"\.png"):
        draw_gantt(found, tmp_path / "a.txt")
    with pytest.raises(UsageError, match="No such file"):
        draw_gantt(found, tmp_path / "no" / "a.png")
