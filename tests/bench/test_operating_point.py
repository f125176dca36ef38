"""Operating points: how many nodes and levels a shape really has, and what is refused."""

import pytest

from lope.bench.configuration import Configuration
from lope.bench.operating_point import MOST_NODES, OperatingPoint
from lope.core.errors import UsageError
from lope.policies import POLICIES
from lope.policies.fixed import FixedPolicy
from lope.shapes import SHAPES
from lope.shapes.chain import ChainShape


@pytest.mark.parametrize(
    ("shape", "depths", "sizes"),
    [
        ("chain", (), [(5, 5)]),
        ("chain", (1, 3, 6), [(1, 1), (3, 3), (6, 6)]),
        ("rsd_s:width=8,depth=4", (), [(4, 32)]),
        ("rsd_s:width=4", (2, 3), [(2, 8), (3, 12)]),
        ("rsd_c:branching=3-2-1", (), [(3, 3 + 6 + 6)]),
        ("rsd_c:branching=3-2-1", (2, 9), [(2, 9), (3, 15)]),
        ("independent:chains=3,depth=2", (), [(2, 6)]),
    ],
)
def test_depth_and_nodes_are_those_of_the_draft(
    shape: str, depths: tuple[int, ...], sizes: list[tuple[int, int]]
) -> None:
    points = OperatingPoint.several([shape], depths)
    assert [(point.depth, point.nodes) for point in points] == sizes


def test_the_usual_points_are_chains_and_beams_of_at_most_32_nodes() -> None:
    points = OperatingPoint.several([], [])
    chains = [point for point in points if point.shape.startswith("chain")]
    assert [point.depth for point in chains] == [1, 2, 3, 4, 6]
    assert [(point.nodes // point.depth, point.depth) for point in points if point not in chains] == [
        *((2, 2), (4, 3), (4, 4), (8, 4)),
    ]
    assert max(point.nodes for point in points) == MOST_NODES
    assert len({point.name for point in points}) == len(points)
    assert [point.depth for point in OperatingPoint.several([], [2])] == [2]


def test_a_point_is_a_configuration_of_the_speed_benchmark() -> None:
    [point] = OperatingPoint.several(["rsd_s:width=4,depth=4"], [3])
    read = Configuration.read(point.configuration("eagle:path=a/b"))
    assert read.name == "rsd_s width=4 depth=3"
    assert read.parts.drafter == "eagle:path=a/b"
    assert POLICIES.make(read.parts.policy) == FixedPolicy(nodes=12, depth=3)
    [chain] = OperatingPoint.several(["chain"], [6])
    assert SHAPES.make(Configuration.read(chain.configuration("ngram")).parts.shape) == ChainShape(6)


@pytest.mark.parametrize(
    ("shape", "depths", "words"),
    [
        ("rsd_s:width=8", (5,), "has more than 32 nodes at 5 levels"),
        ("rsd_c:branching=6-6", (), "has more than 32 nodes at 2 levels"),
        ("chains", (), "did you mean 'chain'"),
        ("chain", (0,), "depth must lie between 1 and 32, not 0"),
    ],
)
def test_what_is_no_point_is_one_line(shape: str, depths: tuple[int, ...], words: str) -> None:
    with pytest.raises(UsageError) as raised:
        OperatingPoint.several([shape], depths)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
