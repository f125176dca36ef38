"""`lope plan schedule`: run a computation graph on machines, and how far that is from the best that can be."""

import time
from pathlib import Path
from typing import Any

import typer

from lope.cli.output import console, print_json
from lope.core.errors import UsageError
from lope.graphs import SCHEDULERS
from lope.graphs.graph_json import read_graph_json
from lope.graphs.schedules.lower_bound import makespan_lower_bound
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.schedule import Schedule
from lope.version import __version__

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def schedule(
    file: Path = typer.Argument(..., help="A graph: .json or .json.gz with a duration for every node."),
    machines: str = typer.Option(..., help="Capacity of each machine type, as 6000 or 1,1,4."),
    method: str = typer.Option("best", help=f"One of {', '.join(SCHEDULERS)}; settings as in gumbel:samples=64."),
    plot: Path | None = typer.Option(None, help="Draw the schedule to this .png, .svg or .pdf."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
) -> None:
    """Schedule a computation graph on machines so that it ends early."""
    if not file.name.endswith((".json", ".json.gz")):
        raise UsageError(f"{file}: a graph to schedule is a .json or .json.gz file")
    limits, rule = Machines.read(machines), SCHEDULERS.make(method)
    graph = read_graph_json(file, require=("duration",))
    limits.check(graph)
    started = time.perf_counter()
    found: Schedule = rule.schedule(graph, limits)
    took = time.perf_counter() - started
    found.check()
    if plot is not None:
        _plot(found, plot)
    document = _document(found, method, took)
    if as_json:
        print_json(document)
    else:
        _show(document, plot)


def _document(found: Schedule, method: str, seconds: float) -> dict[str, Any]:
    graph = found.graph
    bound = makespan_lower_bound(graph, found.machines)
    rows = zip(graph.names, found.starts.tolist(), found.finishes.tolist(), strict=True)
    return {
        "graph": graph.name,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "machines": list(found.machines.capacities),
        "method": method,
        "seconds": seconds,
        "makespan": found.makespan,
        "lower_bound": bound,
        "gap": found.makespan / bound - 1 if bound else 0.0,
        "schedule": [{"node": name, "start": start, "finish": finish} for name, start, finish in rows],
        "lope_version": __version__,
    }


def _plot(found: Schedule, path: Path) -> None:
    from lope.graphs.schedules.gantt import draw_gantt

    draw_gantt(found, path)


def _show(document: dict[str, Any], plot: Path | None) -> None:
    console.print(f"{document['graph']}: {document['num_nodes']} nodes, {document['num_edges']} edges", markup=False)
    console.print(
        f"makespan, {document['method']}  {document['makespan']:g}  ({document['seconds']:.2f} s)", markup=False
    )
    console.print(f"no schedule below  {document['lower_bound']:g}  (gap {100 * document['gap']:.1f} %)")
    rows = sorted(document["schedule"], key=lambda row: row["start"])
    for row in rows[:40]:
        console.print(f"{row['start']:12g} {row['finish']:12g}  {row['node']}", markup=False)
    if len(rows) > 40:
        console.print(f"... {len(rows) - 40} more (--json lists all)")
    if plot is not None:
        console.print(f"written: {plot}", markup=False)
