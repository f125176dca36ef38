"""Lanes: one line per system with its mark, its bounds and its number; the shaded band is the noise of the run."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from lope.bench.report.axis import Axis
from lope.bench.report.number import Number


@dataclass(frozen=True)
class Lane:
    """One system. bounds: its interval, if it has one. colour: the number of its colour on this page."""

    name: str
    colour: int
    value: Number
    bounds: tuple[Number, Number] | None = None


@dataclass(frozen=True)
class Lanes:
    """A panel of lanes over one axis.

    band: bounds of the noise. baseline: where the thin line stands, and where bars begin. bars: bars, not dots.
    """

    title: str
    lanes: Sequence[Lane]
    axis: Axis
    baseline: float
    band: tuple[Number, Number] | None = None
    bars: bool = False

    def show(self) -> str:
        """The panel as HTML."""
        rows = "".join(self._lane(lane) for lane in self.lanes)
        return (
            f'<div class="panel"><h3>{html.escape(self.title)}</h3><div class="lanes" data-low="{self.axis.low!r}" '
            f'data-high="{self.axis.high!r}">{rows}<div class="lane scale"><span class="name"></span>'
            f'<span class="track">{self.axis.show()}</span><span class="value"></span></div></div></div>'
        )

    def _lane(self, lane: Lane) -> str:
        bounds = ""
        if lane.bounds is not None:
            bounds = f'<small>{lane.bounds[0].show()}<span class="to">to</span>{lane.bounds[1].show()}</small>'
        return (
            f'<div class="lane" style="--c:var(--s{lane.colour})">{shown_name(lane.name)}'
            f'<span class="track">{self._band()}<b class="base" style="left:{self.axis.place(self.baseline):.3f}%"></b>'
            f'{self._marks(lane)}</span><span class="value">{lane.value.show()}{bounds}</span></div>'
        )

    def _band(self) -> str:
        if self.band is None:
            return ""
        return self._span("band", *self.band)

    def _marks(self, lane: Lane) -> str:
        if lane.value.value is None:
            return ""
        if self.bars:
            left, right = self.axis.place(self.baseline), self.axis.place(lane.value.value)
            return f'<b class="bar" style="left:{left:.3f}%;width:{right - left:.3f}%" {lane.value.attributes}></b>'
        whisker = "" if lane.bounds is None else self._span("whisker", *lane.bounds)
        place = self.axis.place(lane.value.value)
        return f'{whisker}<b class="dot" style="left:{place:.3f}%" {lane.value.attributes}></b>'

    def _span(self, kind: str, low: Number, high: Number) -> str:
        if low.value is None or high.value is None:
            return ""
        left, right = self.axis.place(low.value), self.axis.place(high.value)
        return (
            f'<b class="{kind}" style="left:{left:.3f}%;width:{right - left:.3f}%"><u {low.attributes}></u>'
            f"<u {high.attributes}></u></b>"
        )


def shown_name(name: str) -> str:
    """A system's name behind its coloured dot; a long one breaks where its settings do."""
    words = html.escape(name).replace("=", "=<wbr>").replace(",", ",<wbr>")
    return f'<span class="name"><i></i><span>{words}</span></span>'
