"""The cost curve of this machine, with the budget that it makes the fastest for what was accepted in this run."""

import html
from collections.abc import Mapping
from typing import Any

from lope.bench.costs import calibration_of
from lope.bench.report.axis import Axis
from lope.bench.report.lines import Line, LineChart
from lope.bench.report.number import Number
from lope.bench.summary import Summary

_TEXT = (
    "What a pass of the model costs by the tokens it checks at once, one line for each length of context before it. "
    "The ring marks the budget that promises most, by these costs and by what was accepted in this run."
)


def cost_charts(document: Mapping[str, Any], summary: Summary, colours: Mapping[str, int]) -> str:
    """A chart for every system that has a calibration; nothing where none has."""
    charts = [_chart(costs, summary, colours) for costs in document["calibration"] or [] if costs["system"] in colours]
    if not charts:
        return ""
    return f'<section><h2>Cost of a pass</h2><p class="soft">{_TEXT}</p>{"".join(charts)}</section>'


def _chart(costs: Mapping[str, Any], summary: Summary, colours: Mapping[str, int]) -> str:
    name = costs["system"]
    calibration = calibration_of(costs)
    acceptance = summary.overall[name].acceptance if name in summary.overall else ()
    lines = []
    for place, (context, curve) in enumerate(zip(calibration.contexts, calibration.passes, strict=True)):
        nodes, _ = calibration.best(acceptance, context)
        sizes = sorted({*curve.sizes, 1 + nodes})
        points = [
            (float(size), Number(f"pass_seconds@{size}", name, str(context), calibration.seconds(size, context)))
            for size in sizes
        ]
        lines.append(Line(f"{context} tokens of context", 2 + (colours[name] + place) % 10, points, float(1 + nodes)))
    largest = max(1000 * (number.value or 0.0) for line in lines for _, number in line.points)
    chart = LineChart(
        lines,
        across=Axis.over([x for line in lines for x, _ in line.points]),
        up=Axis.over([largest]),
        x_label="tokens in one pass",
        y_label="milliseconds",
        scale=1000.0,
    )
    shortest = calibration.contexts[0]
    chosen = Number("rows", name, str(shortest), 1.0 + calibration.best(acceptance, shortest)[0]).show()
    words = f"Fastest at the shortest context: {chosen} tokens a pass."
    return f'<h3>{html.escape(name)}</h3><p class="soft">{words}</p>{chart.show()}'
