"""`lope drafter eval`: what is this drafter worth here, in which shape, how deep?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from lope.cli import options as opt
from lope.cli.bench_speed import follow, say
from lope.cli.output import console, fail, print_json
from lope.core.errors import LopeError

if TYPE_CHECKING:
    from lope.bench.drafter_evaluation import DrafterEvaluation

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("eval")
def evaluate(
    drafter: Annotated[Path, typer.Argument(help="a drafter folder (lope drafter train)")],
    out: Annotated[Path, typer.Option(help="folder for results.json and report.html; the same command goes on there")],
    target: opt.Model = "smollm2",
    suite: opt.Suite = None,
    per_category: opt.PerCategory = None,
    max_new_tokens: opt.MaxNewTokens = 64,
    shape: Annotated[
        list[str] | None,
        typer.Option(help="chain, rsd_s:width=4, ...; repeatable; default: chains and beams of at most 32 nodes"),
    ] = None,
    depth: Annotated[list[int] | None, typer.Option(help="levels of the shapes; repeatable; default: theirs")] = None,
    temperature: opt.Temperature = 0.0,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            "--with", help="another drafter, a --config of lope bench speed, or none; repeatable; default: ngram"
        ),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="keep the figures in the drafter's folder and card")] = False,
    dtype: opt.Dtype = "auto",
    device: opt.Device = "cpu",
    threads: opt.Threads = None,
    exact: opt.Exact = None,
    seed: Annotated[int, typer.Option(help="of the order of the prompts, and of what is drawn")] = 0,
    resume: opt.Resume = True,
    json: opt.AsJson = False,
) -> None:
    """Run DRAFTER over a suite at several operating points beside plain decoding; name the fastest by calibration."""
    document: dict[str, Any] = {}
    try:
        from lope.bench.drafter_evaluation import DrafterEvaluation, EvaluationSettings
        from lope.bench.operating_point import OperatingPoint
        from lope.bench.speed import SpeedSettings

        speed = SpeedSettings(
            out=out,
            suite=suite,
            per_category=per_category,
            max_new_tokens=max_new_tokens,
            model=target,
            dtype=dtype,
            device=device,
            threads=threads,
            exact=exact,
            temperature=temperature,
            seed=seed,
            resume=resume,
            progress=not json,
        )
        points = OperatingPoint.several(shape or (), depth or ())
        others = ("ngram",) if beside is None else tuple(beside)
        document = _run(DrafterEvaluation(EvaluationSettings(drafter, points, others, speed), say), write, silent=json)
    except LopeError as error:
        fail(str(error), exit_code=error.exit_code, as_json=json, document=document)
    if document.pop("interrupted"):
        words = "interrupted: finished rows are kept, nothing was written; the same command goes on from there"
        fail(words, exit_code=130, as_json=json, document=document)
    document = {"drafter": str(drafter), **document}
    if json:
        print_json(document)
    else:
        _print(document, write)


def _run(evaluation: "DrafterEvaluation", write: bool, *, silent: bool) -> dict[str, Any]:
    """Take all rows; the document to print."""
    try:
        interrupted = follow(evaluation.run, silent=silent)
        found = evaluation.finish()
        if write and not interrupted:
            evaluation.write(found)
    finally:
        evaluation.run.close()
    return {
        **found.to_json(),
        "categories": found.by_group(),
        "operating_point": found.operating_point(),
        "results": str(evaluation.run.results.path),
        "report": str(evaluation.run.report),
        "interrupted": interrupted,
    }


def _print(document: dict[str, Any], written: bool) -> None:
    console.print(_table(document))
    console.print(
        f"a draft step reads {document['draft_cost']:.3f} of what a pass of the target reads (projection, layers, "
        f"head; no embedding); costs at {document['context']} tokens of context",
        soft_wrap=True,
    )
    if document["temperature"]:
        console.print(
            "answers were drawn: systems say different things, so speed-ups compare different texts, and the noise "
            "of two plain runs is that of the clock alone",
            soft_wrap=True,
        )
    best = document["operating_point"]
    if best is None:
        words = "no operating point is chosen: the costs of this machine are not known (lope calibrate measures longer)"
        console.print(words, soft_wrap=True)
    else:
        words = f"fastest by calibration: {best['shape']} cut to {best['depth']} deep, {best['nodes']} a draft"
        plain = "" if best["expected_speedup"] > 1.0 else ": no gain on this machine"
        console.print(
            f"{words}: {best['expected_speedup']:.2f} times as fast as plain decoding{plain}",
            markup=False,
            soft_wrap=True,
        )
    console.print(f"results: {document['results']}\nreport:  {document['report']}", markup=False, soft_wrap=True)
    if written:
        console.print(f"written: {document['drafter']}", markup=False, soft_wrap=True)


def _table(document: dict[str, Any]) -> Table:
    title = "speed-up over plain decoding, prompt excluded; below it the 95 % interval"
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    shown.add_column("", overflow="fold")
    for heading in ("tokens/pass", "accepted %", "MBSU", "modelled", "speed-up", "tokens/s"):
        shown.add_column(heading, justify="right", overflow="fold")
    beside = [{"name": name, **figures} for name, figures in document["beside"].items()]
    for row in (*document["points"], *beside):
        shown.add_row(
            escape(row["name"]),
            _with_bounds(row, "tokens_per_pass"),
            " ".join(f"{100 * value:.0f}" for value in row["acceptance"]) or "–",
            _number(row.get("mbsu")),
            _number(row.get("modelled_speedup")),
            _with_bounds(row, "speedup"),
            _number(row["tokens_per_second"], 1),
        )
    return shown


def _with_bounds(row: dict[str, Any], name: str) -> str:
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    bounds = "" if low is None or high is None else f"\n{low:.2f}–{high:.2f}"
    return _number(row[name]) + bounds


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
