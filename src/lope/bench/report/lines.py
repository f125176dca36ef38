"""A chart of lines: SVG stretched to any size, with its labels and points in HTML so that they keep theirs."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from lope.bench.report.axis import Axis
from lope.bench.report.lanes import shown_name
from lope.bench.report.number import Number


@dataclass(frozen=True)
class Line:
    """One line. points: (x, number). marked: the x of a point that stands out. colour as in lanes."""

    name: str
    colour: int
    points: Sequence[tuple[float, Number]]
    marked: float | None = None


@dataclass(frozen=True)
class LineChart:
    """Lines over an x and a y axis. scale: what y is multiplied with to be shown."""

    lines: Sequence[Line]
    across: Axis
    up: Axis
    x_label: str
    y_label: str
    unit: str = ""
    scale: float = 1.0

    def show(self) -> str:
        """The chart as HTML."""
        strokes = "".join(self._stroke(line) for line in self.lines)
        grid = "".join(
            f'<line x1="0" x2="100" y1="{100 - self.up.place(tick):.3f}" y2="{100 - self.up.place(tick):.3f}"/>'
            for tick in self.up.ticks
        )
        names = "".join(
            f'<span style="--c:var(--s{line.colour})">{shown_name(line.name)}</span>' for line in self.lines
        )
        return (
            f'<div class="chart"><div class="y-label">{html.escape(self.y_label)}</div>'
            f'<div class="plot" data-low="{self.up.low!r}" data-high="{self.up.high!r}" data-scale="{self.scale!r}">'
            f'<div class="y">{self.up.show("bottom", self.unit)}</div>'
            f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true"><g class="grid">{grid}</g>'
            f"{strokes}</svg>{''.join(self._points(line) for line in self.lines)}"
            f'<div class="x">{self.across.show()}</div></div>'
            f'<div class="x-label">{html.escape(self.x_label)}</div><div class="legend">{names}</div></div>'
        )

    def _place(self, x: float, number: Number) -> tuple[float, float]:
        assert number.value is not None
        return self.across.place(x), self.up.place(self.scale * number.value)

    def _stroke(self, line: Line) -> str:
        places = [self._place(x, number) for x, number in line.points]
        path = " ".join(f"{x:.3f},{100 - y:.3f}" for x, y in places)
        return f'<polyline style="--c:var(--s{line.colour})" points="{path}"/>'

    def _points(self, line: Line) -> str:
        found = []
        for x, number in line.points:
            left, bottom = self._place(x, number)
            kind = "point marked" if x == line.marked else "point"
            found.append(
                f'<b class="{kind}" style="--c:var(--s{line.colour});left:{left:.3f}%;bottom:{bottom:.3f}%" '
                f'title="{html.escape(line.name)}: {number.text}" {number.attributes}></b>'
            )
        return "".join(found)
