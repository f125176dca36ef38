"""A training as a picture: its loss, and the acceptance of held-out answers by draft position, over trained tokens."""

from pathlib import Path
from typing import Any

from lope.core import json_reader
from lope.core.errors import RunError, UsageError

try:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:
    raise UsageError(f"--plot needs {error.name}, which is not installed here: pip install matplotlib") from None


def check_picture(picture: Path) -> None:
    """Before anything is trained. Raises UsageError for an ending that is no format, or a folder that is not there."""
    known = FigureCanvasAgg.get_supported_filetypes()
    if picture.suffix.removeprefix(".").lower() not in known:
        raise UsageError(f"{picture}: a plot ends in .png or .svg (also: {', '.join(sorted(known))})")
    if not picture.resolve().parent.is_dir():
        raise UsageError(f"{picture}: there is no folder {picture.parent}")
    if picture.is_dir():
        raise UsageError(f"{picture}: is a folder")


def plot_training(log: Path, picture: Path) -> None:
    """Draw a log.jsonl to `picture`. Raises UsageError for a log that is none, RunError where it cannot be written."""
    rows = _rows(log)
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    FigureCanvasAgg(figure)  # no pyplot: it would keep every figure alive in a global table
    left, right = figure.subplots(1, 2)
    for stage in dict.fromkeys(row["stage"] for row in rows):
        own = [row for row in rows if row["stage"] == stage]
        left.plot([row["tokens"] / 1e6 for row in own], [row["loss"] for row in own], label=stage, linewidth=0.8)
    looks = [row for row in rows if row.get("held_out")]
    for position in range(len(looks[0]["held_out"]) if looks else 0):
        tokens, values = [row["tokens"] / 1e6 for row in looks], [row["held_out"][position] for row in looks]
        right.plot(tokens, values, marker=".", label=f"position {position + 1}")
    for axes, name in ((left, "loss"), (right, "acceptance, held out")):
        axes.set_xlabel("answer tokens learned from, millions")
        axes.set_ylabel(name)
        if axes.lines:
            axes.legend()
    right.set_ylim(bottom=0.0)
    try:
        figure.savefig(picture, dpi=110)
    except OSError as error:
        raise RunError(f"{picture}: cannot be written: {error.strerror or error}") from None


def _rows(log: Path) -> list[dict[str, Any]]:
    try:
        rows = [json_reader.parsed(line) for line in log.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise UsageError(f"{log}: is not the log of a training: {error}") from None
    if not rows:
        raise UsageError(f"{log}: holds no step yet")
    return rows
