"""The cost curve as a picture: medians with their interquartile range, and the smoothed curve."""

from pathlib import Path

from lope.core.errors import UsageError
from lope.engine.calibration_record import CalibrationRecord

try:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:
    raise UsageError(f"--plot needs {error.name}, which is not installed here: pip install matplotlib") from None


def plot_passes(record: CalibrationRecord, path: Path) -> None:
    """Draw milliseconds of a pass by its rows, a curve for each context length, to a .png."""
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    FigureCanvasAgg(figure)  # no pyplot: it would keep every figure alive in a global table
    axes = figure.add_subplot()
    for context, measured in zip(record.contexts, record.passes, strict=True):
        curve = measured.curve()
        (line,) = axes.plot(curve.sizes, [1e3 * value for value in curve.seconds], label=f"context {context}")
        medians = [1e3 * value for value in measured.seconds]
        spread = [1e3 * value / 2 for value in measured.spread]
        axes.errorbar(measured.sizes, medians, yerr=spread, fmt=".", capsize=2, color=line.get_color())
    axes.set_xlabel("rows of the pass")
    axes.set_ylabel("milliseconds")
    axes.set_ylim(bottom=0.0)
    axes.set_title(f"{record.name}, {record.place.dtype}, {record.place.threads} threads")
    axes.legend()
    figure.savefig(path, dpi=150)
