"""`lope calibrate`: what passes and drafts cost on this machine, and what therefore pays."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from lope.cli import options as opt
from lope.cli.output import complaints, console, print_json
from lope.core.errors import UsageError

if TYPE_CHECKING:
    from lope.engine.calibration import EngineCalibration
    from lope.engine.calibration_plan import CalibrationPlan
    from lope.engine.calibration_record import CalibrationRecord, Measured
    from lope.engine.engine import Engine

app = typer.Typer(add_completion=False)
_WIDTH = 44  # of the longest bar
_ACCEPTANCES = (0.1, 0.3, 0.5, 0.7, 0.9)


@app.command()
def calibrate(
    model: opt.Model = "smollm2",
    drafter: Annotated[
        str | None, typer.Option(help="ngram, model:path=DIR, ...; default: ngram, then what lope ships for the model")
    ] = None,
    shape: opt.ShapeOption = "chain",
    draft_stop: opt.DraftStop = "never",
    dtype: opt.Dtype = "auto",
    device: opt.Device = "cpu",
    threads: opt.Threads = None,
    exact: opt.Exact = None,
    quick: Annotated[bool, typer.Option("--quick", help="fewer sizes, at most 20 s")] = False,
    show: Annotated[bool, typer.Option("--show", help="print what was saved; measure nothing")] = False,
    plot: Annotated[Path | None, typer.Option(help="also draw the curve into this .png")] = None,
    json: opt.AsJson = False,
) -> None:
    """Measure the cost of passes, of drafts and of the rest of a round; save it for the policy `calibrated`."""
    from lope.engine.calibration import EngineCalibration
    from lope.engine.calibration_plan import FULL, QUICK
    from lope.engine.opening import load

    draw = None if plot is None else _drawer(plot)
    engine = load(
        model,
        drafter=drafter or "ngram",
        shape=shape,
        draft_stop=draft_stop,
        dtype=dtype,
        device=device,
        threads=threads,
        exact=exact,
        progress=not json,
    )
    calibration = EngineCalibration(engine)
    if show:
        record, path = calibration.read(), str(calibration.path)
    else:
        plan = QUICK if quick else FULL
        record = _measured(calibration, plan, json)
        path = calibration.save(record)
        for beside in [] if drafter else _shipped(engine):
            beside.save(_measured(beside, plan, json))
    if plot is not None and draw is not None:
        draw(record, plot)
    if json:
        print_json({**record.document(), "file": path, "pays": _pays(record, calibration.drafter)})
        return
    if show:
        _print(record, calibration.drafter)
        for other in sorted(record.drafters.keys() - {calibration.drafter}):
            words = f"also measured: drafts of {other} (--drafter, --shape and --draft-stop show one)"
            console.print(words, markup=False, soft_wrap=True)
    console.print(f"saved in {path}", soft_wrap=True)


def _shipped(engine: "Engine") -> list["EngineCalibration"]:
    """Of the drafters that lope ships for the model, those whose best shape is known: what `lope.load` chooses from."""
    from lope.engine.calibration import EngineCalibration
    from lope.engine.default_drafter import points
    from lope.engine.engine import Engine
    from lope.engine.parts import Parts

    parts = [Parts(drafter=kind, shape=str(point["shape"])) for kind, point in points(engine.model)]
    return [EngineCalibration(Engine(engine.model, each, exact=engine.exact)) for each in parts]


def _measured(calibration: "EngineCalibration", plan: "CalibrationPlan", silent: bool) -> "CalibrationRecord":
    record = _measure(calibration, plan, silent=silent)
    if not silent:
        _print(record, calibration.drafter)
    return record


def _measure(calibration: "EngineCalibration", plan: "CalibrationPlan", *, silent: bool) -> "CalibrationRecord":
    columns = (TextColumn("measuring"), BarColumn(), TimeElapsedColumn())
    total = len(plan.contexts) * len(plan.rows) * (1 + plan.rounds) + 1 + plan.plain + plan.drafts
    with Progress(*columns, console=complaints, disable=silent, transient=True) as bar:
        task = bar.add_task("", total=total)
        return calibration.measure(plan, advance=lambda: bar.advance(task))


def _print(record: "CalibrationRecord", drafter: str) -> None:
    place = record.place
    console.print(
        f"{record.name} ({place.dtype}, {'exact' if place.exact else 'not exact'}) on {place.device}, "
        f"{place.threads} threads, {place.processor}; {'quick, ' if record.quick else ''}{record.made}",
        soft_wrap=True,
    )
    console.print("a pass of the target, milliseconds ± interquartile range", soft_wrap=True)
    console.print(_passes(record))
    for context, measured in zip(record.contexts, record.passes, strict=True):
        _bars(context, measured)
    console.print(f"the rest of a round: {record.overhead * 1e3:.2f} ms")
    drafts = record.drafters[drafter].by_depth
    console.print(f"one draft of {drafter}", soft_wrap=True)
    table = Table()
    for column in ("depth", "nodes", "ms", "± IQR"):
        table.add_column(column, justify="right")
    for row in zip(drafts.sizes, record.drafters[drafter].nodes, drafts.seconds, drafts.spread, strict=True):
        table.add_row(str(row[0]), str(row[1]), f"{row[2] * 1e3:.3f}", f"{row[3] * 1e3:.3f}")
    console.print(table)
    console.print("what pays, if every position is accepted as often", soft_wrap=True)
    pays = Table()
    for column in ("accepted", "depth", "nodes", "expected speed-up"):
        pays.add_column(column, justify="right")
    for each in _pays(record, drafter):
        pays.add_row(f"{each['acceptance']:.0%}", str(each["depth"]), str(each["nodes"]), f"{each['speedup']:.2f}×")
    console.print(pays)


def _passes(record: "CalibrationRecord") -> Table:
    table = Table()
    table.add_column("rows", justify="right")
    for context in record.contexts:
        table.add_column(f"context {context}", justify="right")
    rows = sorted({size for measured in record.passes for size in measured.sizes})
    for size in rows:
        cells = []
        for measured in record.passes:
            at = measured.sizes.index(size) if size in measured.sizes else None
            cells.append("" if at is None else f"{measured.seconds[at] * 1e3:.1f} ± {measured.spread[at] * 1e3:.1f}")
        table.add_row(str(size), *cells)
    return table


def _bars(context: int, measured: "Measured") -> None:
    """The curve as bars, as long as the smoothed seconds."""
    curve = measured.curve()
    longest = max(curve.seconds) or 1.0
    console.print(f"context {context}: rows, ms, times one row")
    for rows, seconds in zip(curve.sizes, curve.seconds, strict=True):
        bar = "█" * max(1, round(_WIDTH * seconds / longest))
        console.print(f"{rows:>4} {seconds * 1e3:>8.1f} {seconds / (curve.seconds[0] or 1.0):>6.2f}× {bar}")


def _pays(record: "CalibrationRecord", drafter: str) -> list[dict[str, Any]]:
    """For each acceptance the best fixed budget at the middle context, and its expected speed-up."""
    calibration = record.calibration(drafter)
    context = record.contexts[len(record.contexts) // 2]
    rows = []
    for acceptance in _ACCEPTANCES:
        chances = [acceptance] * calibration.deepest
        nodes, depth = calibration.best(chances, context)
        faster = calibration.speed(nodes, depth, chances, context) / calibration.speed(0, 0, chances, context)
        rows.append({"acceptance": acceptance, "nodes": nodes, "depth": depth, "speedup": faster})
    return rows


def _drawer(path: Path) -> "Callable[[CalibrationRecord, Path], None]":
    """What draws the file; whatever stands in its way is said before anything is measured."""
    if path.suffix != ".png" or not path.parent.is_dir():
        raise UsageError(f"--plot takes the path of a .png file in a folder that exists, not {path}")
    from lope.cli.calibrate_plot import plot_passes

    return plot_passes
