"""`lope bench quality`: do configurations answer as well as the reference?"""

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import torch
import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from lope.cli import options as opt
from lope.cli.output import complaints, console, print_json
from lope.core.errors import RunError, UsageError

if TYPE_CHECKING:
    from lope.bench.quality.judgement import Judge, Judgement
    from lope.bench.quality.subject import Subject

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def quality(
    config: Annotated[
        list[str] | None,
        typer.Option(help='"drafter=ngram,dtype=bfloat16,model=DIR,exact=no"; repeatable, the first is the reference'),
    ] = None,
    text: Annotated[list[Path] | None, typer.Option(help="perplexity of a text file or JSON lines; repeatable")] = None,
    texts: Annotated[int | None, typer.Option(help="only the first so many texts")] = None,
    window: Annotated[int | None, typer.Option(help="tokens; default: the context, 1024 at most")] = None,
    stride: Annotated[int, typer.Option(help="tokens by which the window moves")] = 512,
    max_tokens: Annotated[int | None, typer.Option(help="of each text")] = None,
    retrieval: Annotated[str, typer.Option(help="find a sentence in a long prompt: passkey, needle, or both")] = "",
    lengths: Annotated[str, typer.Option(help="of these prompts, in tokens")] = "512,1024",
    depths: Annotated[str, typer.Option(help="where the sentence stands: 0 the beginning, 1 the end")] = "0,0.5,1",
    repeats: Annotated[int, typer.Option(help="prompts of each length and depth")] = 2,
    tasks: Annotated[Path | None, typer.Option(help="JSON lines: prompt, answer, match")] = None,
    max_new_tokens: opt.MaxNewTokens = 64,
    raw: Annotated[bool, typer.Option(help="no chat template around prompts")] = False,
    model: opt.Model = "smollm2",
    dtype: opt.Dtype = "auto",
    device: opt.Device = "cpu",
    threads: opt.Threads = None,
    exact: opt.Exact = None,
    seed: Annotated[int, typer.Option(help="of the hidden sentences")] = 0,
    out: Annotated[Path | None, typer.Option(help="write the document into this .json")] = None,
    json: opt.AsJson = False,
) -> None:
    """Judge configurations by perplexity, by retrieval from long prompts and by tasks; the first is the reference."""
    if threads is not None:
        from lope.engine.opening import set_threads

        set_threads(threads)
    if out is not None and (out.suffix != ".json" or not out.parent.is_dir()):
        raise UsageError(f"--out takes the path of a .json file in a folder that exists, not {out}")
    asked = {
        "text": [str(path) for path in text or ()],
        "texts": texts,
        "window": window,
        "stride": stride,
        "max_tokens": max_tokens,
        "retrieval": retrieval,
        "lengths": lengths,
        "depths": depths,
        "repeats": repeats,
        "tasks": None if tasks is None else str(tasks),
        "max_new_tokens": max_new_tokens,
        "raw": raw,
        "seed": seed,
        "device": device,
        "threads": torch.get_num_threads(),
    }
    judge = _make_judge(asked)
    subjects = _subjects(config or [], model, dtype, exact)
    judgements = _judge(judge, subjects, device, silent=json)
    document = _document(subjects, judgements, asked)
    if out is not None:
        _write(out, document)
    if json:
        print_json(document)
    else:
        console.print(_table(judgements))


def _make_judge(asked: dict[str, Any]) -> "Judge":
    """What the options ask of every configuration; files are read before any model is."""
    from lope.bench.quality.judgement import Judge
    from lope.bench.quality.perplexity import Perplexity, read_texts
    from lope.bench.quality.retrieval import Retrieval
    from lope.bench.quality.tasks import read_tasks

    wanted = None
    if asked["retrieval"]:
        kinds = tuple(each.strip() for each in asked["retrieval"].split(","))
        lengths = _numbers("--lengths", asked["lengths"], int)
        depths = _numbers("--depths", asked["depths"], float)
        wanted = Retrieval(kinds, lengths, depths, asked["repeats"], asked["seed"])
    read = [each for path in asked["text"] for each in read_texts(Path(path))]
    return Judge(
        texts=read[: asked["texts"]],
        perplexity=Perplexity(asked["window"], asked["stride"], asked["max_tokens"]),
        retrieval=wanted,
        tasks=[] if asked["tasks"] is None else read_tasks(Path(asked["tasks"])),
        max_new_tokens=asked["max_new_tokens"],
        raw=asked["raw"],
    )


def _subjects(configs: list[str], model: str, dtype: str, exact: bool | None) -> "list[Subject]":
    from lope.bench.quality.subject import Subject
    from lope.engine.parts import Parts

    base = Subject("plain", model, dtype, exact, Parts(drafter="none"))
    subjects = [Subject.read(each, base) for each in configs] or [base]
    names = [subject.name for subject in subjects]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two configurations are called {name!r}: give one of them another name=...")
    return subjects


def _document(subjects: "list[Subject]", judgements: "list[Judgement]", asked: dict[str, Any]) -> dict[str, Any]:
    from lope.bench.machine import machine, session

    return {
        "kind": "lope bench quality",
        "schema": 1,
        "reference": subjects[0].name,
        "configurations": {
            subject.name: {"settings": subject.document(), **judgement.document(judgements[0])}
            for subject, judgement in zip(subjects, judgements, strict=True)
        },
        "settings": asked,
        "machine": machine(),
        "session": session(),
    }


def _judge(judge: "Judge", subjects: "list[Subject]", device: str, *, silent: bool) -> "list[Judgement]":
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    judgements = []
    with Progress(*columns, console=complaints, disable=silent, transient=True) as bar:
        task = bar.add_task("", total=len(subjects) * judge.steps)
        for subject in subjects:
            bar.update(task, description=escape(subject.name))
            engine = subject.load(device, not silent)
            judgements.append(judge.judge(subject.name, engine, lambda: bar.advance(task)))
    return judgements


def _table(judgements: "list[Judgement]") -> Table:
    """A column for each configuration, a line for each thing that was asked."""
    reference = judgements[0]
    table = Table()
    table.add_column("", no_wrap=True)
    for judgement in judgements:
        table.add_column(escape(judgement.name), justify="right", overflow="fold")
    if reference.perplexity:
        table.add_row("perplexity", *(f"{each.perplexity.perplexity:.3f}" for each in judgements if each.perplexity))
        ratios = [each.document(reference)["perplexity"]["ratio"] for each in judgements]
        table.add_row("of the reference's", *(f"{ratio:.4f}×" for ratio in ratios))
        counts = [f"{each.perplexity.tokens:,}" for each in judgements if each.perplexity]
        table.add_row("tokens", *counts, end_section=True)
    for number, cell in enumerate(reference.cells):
        found = [f"{each.cells[number].found}/{each.cells[number].count}" for each in judgements]
        table.add_row(f"{cell.kind}, {cell.tokens} tokens, depth {cell.depth:g}", *found)
    if reference.cells:
        table.add_row("found", *(_share(each.retrieval) for each in judgements), end_section=True)
    if reference.tasks:
        table.add_row("tasks right", *(_share(each.accuracy) for each in judgements))
    if reference.given:
        table.add_row("same answers", *(_share(each.agrees(reference)) for each in judgements))
    return table


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _numbers(name: str, text: str, kind: Any) -> tuple[Any, ...]:
    try:
        return tuple(kind(each) for each in text.split(","))
    except ValueError:
        raise UsageError(f"{name} takes numbers separated by commas, not {text!r}") from None


def _write(out: Path, document: dict[str, Any]) -> None:
    try:
        out.write_text(json_text.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise RunError(f"{out}: cannot be written: {error.strerror or error}") from None
