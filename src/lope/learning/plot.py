"""Mean regret with its band, all methods together: once on plain axes, once on logarithmic ones."""

from pathlib import Path
from typing import Any

import numpy as np

from lope.core.errors import UsageError

try:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:
    raise UsageError(f"plots need {error.name}, which is not installed here: pip install 'lope[learn]'") from None

BAND = 1.96  # standard errors: a 95 % interval of the mean


def plot_regret(curves: dict[str, Any], title: str, path: Path) -> None:
    """Draw `curves` (as result_file.curves gives them) to `path`; its ending chooses the format."""
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    FigureCanvasAgg(figure)  # no pyplot: it would keep every figure alive in a global table
    plain, logarithmic = figure.subplots(1, 2)
    for axes in (plain, logarithmic):
        _draw(axes, curves)
    logarithmic.set_xscale("log")
    logarithmic.set_yscale("log")
    plain.legend(loc="upper left")
    figure.suptitle(f"{title}: mean regret, 95 % band of the mean")
    figure.savefig(path, dpi=110)


def _draw(axes: Axes, curves: dict[str, Any]) -> None:
    at = np.asarray(curves["at"])
    for method, curve in curves["regret"].items():
        mean = np.array(curve["mean"], dtype=np.float64)  # None, where there is no number, becomes NaN: a gap
        width = BAND * np.nan_to_num(np.array(curve["stderr"], dtype=np.float64))
        (line,) = axes.plot(at, mean, label=method)
        axes.fill_between(at, mean - width, mean + width, color=line.get_color(), alpha=0.2, linewidth=0)
    axes.set_xlabel("step")
    axes.set_ylabel("regret")
