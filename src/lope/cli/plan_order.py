"""`lope plan order`: the peak memory of a graph before and after it is put in a better order."""

import dataclasses
import time
from pathlib import Path
from typing import Any

import typer

from lope.cli.output import console, print_json
from lope.core.errors import UsageError
from lope.graphs import IMPORTERS, ORDERS
from lope.graphs.graph import Graph, Ints
from lope.graphs.graph_json import read_graph_json, write_graph_json
from lope.graphs.memory import Timeline, memory_timeline, peak_lower_bound
from lope.version import __version__

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

SUFFIXES = {".json": "json", ".json.gz": "json", ".onnx": "onnx", ".pt2": "torch_export"}


@app.command()
def order(
    file: Path = typer.Argument(..., help="A graph: .onnx, .pt2 (torch.export), .json or .json.gz."),
    method: str = typer.Option("best", help=f"One of {', '.join(ORDERS)}; settings as in beam:width=32."),
    seconds: float = typer.Option(10.0, help="Time limit for a method that has one."),
    dynamic: int | None = typer.Option(None, help="Size of every dimension that an ONNX file leaves open."),
    plot: Path | None = typer.Option(None, help="Draw bytes held over the steps, before and after, to this PNG."),
    draw: Path | None = typer.Option(None, help="Draw the graph to this .dot or .png."),
    write: Path | None = typer.Option(None, help="Write the model or graph, reordered, to this .onnx or .json."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
) -> None:
    """Order a computation graph so that it runs in less memory."""
    _check_targets(file, draw, write)
    graph = read_graph(file, dynamic=dynamic)
    rule = rule_with_seconds(method, seconds)
    started = time.perf_counter()
    found = rule.order(graph)
    took = time.perf_counter() - started
    before = memory_timeline(graph, ORDERS.make("as_given").order(graph))
    after = memory_timeline(graph, found)
    if plot is not None:
        _plot(plot, graph, {"as given": before, method: after})
    if draw is not None:
        _draw(draw, graph)
    if write is not None:
        _write(write, file, dynamic, graph, after.order)
    document = {
        "graph": graph.name,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "method": method,
        "seconds": took,
        "peak_before": before.peak,
        "peak_after": after.peak,
        "lower_bound": peak_lower_bound(graph),
        "peak_step": after.peak_step,
        "order": [graph.names[node] for node in after.order.tolist()],
        "lope_version": __version__,
    }
    if as_json:
        print_json(document)
    else:
        _show(document, [str(path) for path in (plot, draw, write) if path is not None])


def read_graph(file: Path, *, dynamic: int | None = None) -> Graph:
    """The graph in a file, read by the importer for its suffix. Raises UsageError where there is none."""
    suffix = next((ending for ending in sorted(SUFFIXES, key=len, reverse=True) if file.name.endswith(ending)), None)
    if suffix is None:
        raise UsageError(f"{file}: a graph file ends in one of {', '.join(SUFFIXES)}")
    if not file.is_file():
        raise UsageError(f"{file}: no such file")
    if SUFFIXES[suffix] == "json":
        return read_graph_json(file, require=("output_bytes",))
    settings = f":dynamic={dynamic}" if dynamic is not None and SUFFIXES[suffix] == "onnx" else ""
    graph: Graph = IMPORTERS.make(SUFFIXES[suffix] + settings).read(file)
    return graph


def rule_with_seconds(method: str, seconds: float) -> Any:
    """The order rule that `method` spells; one that takes `seconds` gets the limit, unless the text sets its own."""
    rule = ORDERS.make(method)
    takes = [field.name for field in dataclasses.fields(rule)]
    if "seconds" in takes and "seconds=" not in method:
        return dataclasses.replace(rule, seconds=seconds)
    return rule


def _plot(path: Path, graph: Graph, timelines: dict[str, Timeline]) -> None:
    from lope.graphs.memory_plot import plot_timelines

    plot_timelines(graph, timelines, path)


def _check_targets(source: Path, draw: Path | None, write: Path | None) -> None:
    """Refuse, before any work is done, what could not be written in the end."""
    if draw is not None and draw.suffix not in (".dot", ".png"):
        raise UsageError(f"{draw}: a drawing ends in .dot or .png")
    if write is None or write.name.endswith((".json", ".json.gz")):
        return
    if write.suffix != ".onnx" or source.suffix != ".onnx":
        raise UsageError(f"{write}: write a graph that ends in .json or .json.gz, or in .onnx if it was read from one")


def _draw(path: Path, graph: Graph) -> None:
    if path.suffix == ".dot":
        from lope.graphs.drawing_dot import write_dot

        write_dot(graph, path)
    else:
        from lope.graphs.drawing_png import write_png

        write_png(graph, path)


def _write(path: Path, source: Path, dynamic: int | None, graph: Graph, found: Ints) -> None:
    if path.suffix == ".onnx":
        from lope.graphs.importers.onnx_file import OnnxImporter
        from lope.graphs.onnx_writer import write_reordered_onnx

        write_reordered_onnx(source, OnnxImporter(dynamic).program(source), found, path)
    else:
        write_graph_json(graph.renumbered(found), path)


def _show(document: dict[str, Any], written: list[str]) -> None:
    before, after = document["peak_before"], document["peak_after"]
    change = f"{100 * (after - before) / before:+.1f} %" if before else "no memory at all"
    console.print(f"{document['graph']}: {document['num_nodes']} nodes, {document['num_edges']} edges")
    console.print(f"peak as given   {_mebibytes(before)}")
    console.print(f"peak, {document['method']:<9} {_mebibytes(after)}  ({change}, {document['seconds']:.2f} s)")
    console.print(f"no order below  {_mebibytes(document['lower_bound'])}")
    shown = document["order"] if len(document["order"]) <= 40 else [*document["order"][:40], "..."]
    console.print("order: " + " ".join(shown), markup=False)
    if written:
        console.print("written: " + ", ".join(written), markup=False)


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:12.3f} MiB" if count >= 2**20 else f"{count:12d} B"
