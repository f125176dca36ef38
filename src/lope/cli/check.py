"""`lope check`: is this pair lossless here?"""

import dataclasses
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from lope.cli import options as opt
from lope.cli.output import complaints, console, print_json
from lope.core.errors import UsageError

app = typer.Typer(add_completion=False)


@app.command()
def check(
    target: Annotated[str | None, typer.Option(help="table: check the law of every pair on a random table")] = None,
    samples: Annotated[int, typer.Option(help="answers per pair (with --target table); fewer find less")] = 20_000,
    plant: Annotated[
        str | None, typer.Option(help="plant a fault: no-residual, unrenormalised, shuffled, dropped, merged")
    ] = None,
    model: opt.Model = "smollm2",
    drafter: opt.DrafterOption = "ngram",
    shape: opt.ShapeOption = "chain",
    dtype: opt.Dtype = "auto",
    device: opt.Device = "cpu",
    threads: opt.Threads = None,
    exact: opt.Exact = None,
    max_new_tokens: opt.MaxNewTokens = 64,
    seed: opt.Seed = 0,
    json: opt.AsJson = False,
) -> None:
    """Say whether speculation leaves the answers alone, and tell a numeric near-tie from a bug.

    With --target table: three sampled tokens of every pair of drafter and verifier against their exact law.
    Otherwise: this model with this drafter, against plain decoding. Exit code 1 where something is not lossless.
    """
    if target is not None:
        if target != "table":
            raise UsageError(f"--target is table, not {target!r}; a real model is named by --model")
        passed = _check_table(samples, seed or 0, plant, json)
    else:
        if plant is not None:
            raise UsageError("--plant goes with --target table")
        names = {"drafter": drafter, "shape": shape}
        where = {"dtype": dtype, "device": device, "threads": threads, "exact": exact}
        passed = _check_model(model, names, where, max_new_tokens, seed or 0, json)
    raise SystemExit(0 if passed else 1)


def _check_table(samples: int, seed: int, plant: str | None, as_json: bool) -> bool:
    from lope.engine.law_check import check_laws

    columns = (TextColumn("checking pairs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=complaints, disable=as_json, transient=True) as bar:
        task = bar.add_task("pairs", total=None)
        results = check_laws(samples, seed, plant, lambda done, count: bar.update(task, completed=done, total=count))
    passed = all(result.passed for result in results)
    if as_json:
        print_json({"pairs": [dataclasses.asdict(result) for result in results], "passed": passed})
        return passed
    table = Table(title=f"{samples} answers of three tokens against their exact law" + (f", {plant}" if plant else ""))
    for column in ("drafter", "shape", "verifier", "chi-square", "p-value", ""):
        table.add_column(column)
    for r in results:
        verdict = "[green]lossless[/green]" if r.passed else "[red]not lossless[/red]"
        table.add_row(r.drafter, r.shape or "", r.verifier, f"{r.statistic:.1f}", f"{r.p_value:.3g}", verdict)
    console.print(table)
    return passed


def _check_model(
    model: str, names: dict[str, Any], where: dict[str, Any], tokens: int, seed: int, as_json: bool
) -> bool:
    from lope.engine.opening import load
    from lope.engine.pair_check import check_pair

    engine = load(model, **names, **where, progress=not as_json)
    report = check_pair(engine.plain(), engine, tokens=tokens, seed=seed)
    if as_json:
        backend = engine.model.backend
        named = {"model": model, **names, "dtype": backend.dtype, "kernels": backend.kernels, "exact": engine.exact}
        print_json({**named, **dataclasses.asdict(report), "passed": report.passed})
        return report.passed
    rows = report.rows
    console.print(
        f"rows of one-row and sixteen-row passes: {rows.bit_identical} of {rows.positions} equal to the bit, "
        f"{rows.flips} best tokens flipped, logits differ by at most {rows.max_difference:.3g}"
    )
    console.print(f"greedy answers equal to plain decoding: {report.greedy_equal} of {report.prompts}")
    console.print(f"sampled answers (shared noise) equal to plain ones: {report.coupled_equal} of {report.prompts}")
    console.print(f"tokens per pass: {report.tokens_per_pass:.2f}")
    for difference in report.differences:
        kind = "[yellow]near-tie[/yellow]" if difference.near_tie else "[red]difference[/red]"
        console.print(
            f"{kind} in {difference.prompt!r} at token {difference.position}: {difference.plain_token} became "
            f"{difference.token}; gap {difference.gap:.3g}, the passes differ by {difference.pass_difference:.3g}"
        )
    console.print("[green]lossless[/green]" if report.passed else "[red]not lossless[/red]")
    return report.passed
