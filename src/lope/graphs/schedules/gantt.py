"""A picture of a schedule: one panel per machine type, one bar per node, PNG or SVG by the file's suffix."""

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lope.core.errors import UsageError
from lope.graphs.graph import Ints
from lope.graphs.schedules.schedule import Schedule

COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377")


def draw_gantt(schedule: Schedule, path: Path) -> None:
    """Draw `schedule` to `path`. Bars are as high as what they hold; they stack where a capacity allows several.

    Raises UsageError where the suffix is not .png, .svg or .pdf, or the file cannot be written.
    """
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise UsageError(f"{path}: a plot ends in .png, .svg or .pdf")
    graph, capacities = schedule.graph, schedule.machines.capacities
    figure = Figure(figsize=(12, min(1.0 + 1.2 * len(capacities), 24)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(capacities), 1, sharex=True, squeeze=False)[:, 0]
    for kind, (panel, capacity) in enumerate(zip(axes, capacities, strict=True)):
        nodes = np.flatnonzero((graph.machine_types == kind) & (graph.durations > 0))
        base = lanes(schedule, nodes)
        panel.bar(
            schedule.starts[nodes],
            graph.resources[nodes],
            width=graph.durations[nodes],
            bottom=base,
            align="edge",
            color=[COLOURS[node % len(COLOURS)] for node in nodes.tolist()],
            edgecolor="white",
            linewidth=0.2 if len(nodes) > 100 else 0.6,
        )
        panel.set_ylim(0, max(capacity, (base + graph.resources[nodes]).max(initial=1)))
        panel.set_ylabel(f"type {kind}")
    axes[-1].set_xlabel("time")
    figure.suptitle(f"{graph.name}: makespan {schedule.makespan:g}")
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None


def lanes(schedule: Schedule, nodes: Ints) -> Ints:
    """[len(nodes)] the lowest unit of each bar, so that no two bars overlap.

    First fit by start time. Units that are free need not lie together, so a bar may reach above the capacity.
    """
    starts, ends, needs = schedule.starts[nodes], schedule.finishes[nodes], schedule.graph.resources[nodes]
    base = np.zeros(len(nodes), dtype=np.int64)
    open_bars: list[int] = []
    for bar in np.argsort(starts, kind="stable").tolist():
        open_bars = sorted((other for other in open_bars if ends[other] > starts[bar] + 1e-9), key=base.__getitem__)
        level = 0
        for other in open_bars:
            if base[other] - level >= needs[bar]:
                break
            level = max(level, int(base[other] + needs[other]))
        base[bar] = level
        open_bars.append(bar)
    return base
