"""One way of using a drafter: a shape, so many levels of it, so many nodes."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from lope.core import checks
from lope.core.budget import Budget
from lope.core.chance import KeyedChance
from lope.core.errors import SettingError
from lope.core.protocols import Laws, Shape
from lope.core.rows import Rows
from lope.shapes import SHAPES

MOST_NODES = 32
# chains one to six deep, beams two, four and eight wide; depths of one shape share a calibration
_USUAL: tuple[tuple[str, Sequence[int]], ...] = (
    ("chain:depth=6", (1, 2, 3, 4, 6)),
    ("rsd_s:width=2,depth=2", (2,)),
    ("rsd_s:width=4,depth=4", (3, 4)),
    ("rsd_s:width=8,depth=4", (4,)),
)


@dataclass(frozen=True)
class OperatingPoint:
    """shape: as text, at least `depth` deep. nodes: of a draft that has tokens enough to choose from."""

    shape: str
    depth: int
    nodes: int

    @classmethod
    def several(cls, shapes: Sequence[str], depths: Sequence[int]) -> tuple["OperatingPoint", ...]:
        """Each shape at each depth; without depths at its own; without both what is usual. Each point once.

        Raises UsageError for a shape that is none, and for trees of more than 32 nodes.
        """
        for depth in depths:
            checks.between("depth", depth, 1, MOST_NODES)
        if not shapes and not depths:
            asked = list(_USUAL)
        else:
            asked = [_deepened(shape, depths) for shape in shapes or ("chain",)]
        return tuple(dict.fromkeys(point for shape, each in asked for point in cls._of_shape(shape, each)))

    @classmethod
    def _of_shape(cls, text: str, depths: Sequence[int]) -> Iterator["OperatingPoint"]:
        for depth in depths or (MOST_NODES,):
            nodes, deep = _wish(SHAPES.make(text), depth)
            if nodes > MOST_NODES:
                raise SettingError(f"{text} has more than {MOST_NODES} nodes at {deep} levels: ask for fewer")
            yield cls(text, deep, nodes)

    @property
    def name(self) -> str:
        """Without commas, for a configuration."""
        settings = dataclasses.asdict(SHAPES.make(self.shape)) | {"depth": self.depth}
        return " ".join([self.shape.partition(":")[0], *(f"{name}={_spelt(v)}" for name, v in settings.items())])

    def configuration(self, drafter: str) -> str:
        """For `lope bench speed --config`, with a drafter as text."""
        policy = f"fixed:nodes={self.nodes},depth={self.depth}"
        return f"name={self.name},drafter={drafter},shape={self.shape},policy={policy}"


def _deepened(text: str, depths: Sequence[int]) -> tuple[str, Sequence[int]]:
    """The shape with a wish for the deepest of the depths, where it has one to set."""
    part: Any = SHAPES.make(text)
    if depths and any(field.name == "depth" for field in dataclasses.fields(part)):
        part = dataclasses.replace(part, depth=max(depths))
        return SHAPES.spell(part), depths
    return text, depths


def _wish(shape: Shape, depth: int) -> tuple[int, int]:
    """(nodes, depth) of the draft it makes at temperature 0, one node beyond the limit at most."""
    growth = shape.start(Budget(MOST_NODES + 1, depth), KeyedChance(0, 0, 0), True, 0)
    while growth.frontier:
        count = len(growth.frontier)
        # more tokens than nodes, all alike
        rows = Rows(torch.zeros(count, 2 * MOST_NODES), None, 2 * MOST_NODES, float("-inf"))
        growth.grow(Laws(growth.frontier, rows, (1.0,) * count), [False] * count)
    return len(growth.tree), max(growth.tree.depths)


def _spelt(value: object) -> str:
    return "-".join(map(str, value)) if isinstance(value, tuple) else str(value)
