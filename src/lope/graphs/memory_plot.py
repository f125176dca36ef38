"""A picture of the bytes that are held over the steps of one or more orders."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph
from lope.graphs.memory import Timeline


def plot_timelines(graph: Graph, timelines: Mapping[str, Timeline], path: Path) -> None:
    """Write a PNG, SVG or PDF with one stepped line per timeline, its peak in the legend."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.add_subplot()
    unit, word = _unit(max((line.peak for line in timelines.values()), default=0))
    for name, line in timelines.items():
        drawn = axes.stairs(line.during / unit, np.arange(len(line.during) + 1), baseline=None, label="")
        axes.axhline(line.peak / unit, color=drawn.get_edgecolor(), linestyle=":", linewidth=1)
        drawn.set_label(f"{name}: {line.peak / unit:,.4g} {word}")
    axes.set(title=graph.name, xlabel="step", ylabel=f"held while the node runs ({word})", ylim=(0, None))
    if timelines:
        axes.legend(loc="best")
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise GraphError(f"{path}: the plot cannot be written: {error}") from None


def _unit(peak: int) -> tuple[int, str]:
    return (2**20, "MiB") if peak >= 2**20 else (2**10, "KiB") if peak >= 2**10 else (1, "bytes")
