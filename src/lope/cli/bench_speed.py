"""`lope bench speed`: what do I gain, on my machine, against what I would use otherwise?"""

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lope.cli import options as opt
from lope.cli.long_run import LongRun, time_left
from lope.cli.output import complaints, console, fail, print_json
from lope.core.errors import LopeError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def speed(
    out: Annotated[Path, typer.Option(help="folder for results.json and report.html")] = Path("bench-speed"),
    suite: opt.Suite = None,
    per_category: opt.PerCategory = None,
    max_new_tokens: opt.MaxNewTokens = 64,
    config: Annotated[
        list[str] | None,
        typer.Option(help='ours, as "drafter=ngram,policy=fixed"; repeatable, the first is the reference'),
    ] = None,
    against: Annotated[str, typer.Option(help="peers: transformers,llama.cpp,vllm,openvino")] = "",
    model: opt.Model = "smollm2",
    dtype: opt.Dtype = "auto",
    device: opt.Device = "cpu",
    threads: opt.Threads = None,
    exact: opt.Exact = None,
    temperature: opt.Temperature = 0.0,
    seed: Annotated[int, typer.Option(help="of the order of the prompts, and of what is drawn")] = 0,
    assistant: Annotated[Path | None, typer.Option(help="a smaller model's folder, for peers that can use one")] = None,
    peer_timeout: Annotated[float, typer.Option(help="seconds that a peer may take for one answer")] = 300.0,
    resume: opt.Resume = True,
    json: opt.AsJson = False,
) -> None:
    """Answer a suite of prompts with several systems, interleaved; write results.json and report.html."""
    document: dict[str, Any] = {}
    try:
        from lope.bench.speed import SpeedRun, SpeedSettings

        run = SpeedRun(
            SpeedSettings(
                out=out,
                suite=suite,
                per_category=per_category,
                max_new_tokens=max_new_tokens,
                configs=tuple(config or ()),
                against=tuple(name.strip() for name in against.split(",") if name.strip()),
                model=model,
                dtype=dtype,
                device=device,
                threads=threads,
                exact=exact,
                temperature=temperature,
                seed=seed,
                assistant=assistant,
                peer_timeout=peer_timeout,
                resume=resume,
                progress=not json,
            ),
            say,
        )
        try:
            document["results"] = str(run.results.path)
            interrupted = follow(run, silent=json)
            summary = run.finish()
        finally:
            run.close()
        document = {**summary.to_json(), **document}
        if interrupted:
            words = f"interrupted: {run.finished} of {run.total} rows are kept; the same command goes on from there"
            fail(words, exit_code=130, as_json=json, document=document)
    except LopeError as error:
        fail(str(error), exit_code=error.exit_code, as_json=json, document=document)
    if json:
        print_json(document)
    else:
        console.print(table(document))
        console.print(f"results: {document['results']}\nreport:  {run.report}", markup=False, soft_wrap=True)


def table(document: dict[str, Any]) -> Table:
    """The figures over all prompts, a row a system."""
    shown = Table(title=f"speed-up over {escape(document['reference'])}, prompt excluded", title_justify="left")
    shown.add_column("system", overflow="fold")
    for heading in ("speed-up", "95 % interval", "with prompt", "tokens/pass", "same"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for name, figures in document["systems"].items():
        low, high = figures["speedup_low"], figures["speedup_high"]
        shown.add_row(
            escape(name),
            _number(figures["speedup"]),
            "–" if low is None else f"{low:.2f} to {high:.2f}",
            _number(figures["speedup_with_prompt"]),
            _number(figures["tokens_per_pass"]),
            "–" if figures["agreement"] is None else f"{100 * figures['agreement']:.0f} %",
        )
    return shown


def follow(run: Any, *, silent: bool) -> bool:
    """Take a run's rows under a progress bar; whether Ctrl-C ended it."""
    began, before = time.perf_counter(), run.finished
    with LongRun(silent=silent) as shown:
        try:
            for number, row in enumerate(run.rows(), start=1):
                left = (time.perf_counter() - began) / number * (run.total - before - number)
                words = f"{before + number} of {run.total} answers · {time_left(left)}"
                if row is not None:
                    shown.show(f"{row.group} · {row.system}", (before + number) / run.total, words)
        except KeyboardInterrupt:
            return True
    return False


def say(words: str) -> None:
    """One line of warning on stderr."""
    complaints.print(f"[yellow]lope:[/yellow] {escape(words)}", soft_wrap=True)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
