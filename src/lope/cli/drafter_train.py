"""`lope drafter train`: a drafter for any chat model, from nothing: the target writes the lessons itself."""

import json as json_text
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lope.cli import options as opt
from lope.cli.long_run import LongRun
from lope.cli.output import console, fail, print_json
from lope.core.errors import LopeError, RunError, UsageError

if TYPE_CHECKING:
    from lope.training.school import School
    from lope.training.team import Team

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


# seconds in which process 0 says why it ends, and the launcher ends the others
_SAID = 2.0


@app.command()
def train(
    out: Annotated[Path, typer.Option(help="folder of the drafter; the same command again goes on where it was")],
    target: opt.Model = "smollm2",
    kind: Annotated[
        str | None,
        typer.Option(
            help="standalone (default, or --init's kind), or eagle: one that reads the target's hidden states"
        ),
    ] = None,
    minutes: Annotated[float, typer.Option(help="for all of it, distilling included where no --set is given")] = 90.0,
    steps: Annotated[int, typer.Option(help="exactly so many steps; 0: as many as the minutes allow")] = 0,
    distilled: Annotated[list[Path] | None, typer.Option("--set", help="of `lope drafter distill`; repeatable")] = None,
    prompts: Annotated[str, typer.Option(help="to distil from: a file, or own: the target writes them")] = "own",
    text: Annotated[Path | None, typer.Option(help="plain text to begin with: JSON lines or lines")] = None,
    init: Annotated[Path | None, typer.Option(help="begin from this drafter")] = None,
    loss: Annotated[str, typer.Option(help="kld, reverse_kld, jsd, tvd, tvd++, lk")] = "kld",
    vocab: Annotated[
        int | None, typer.Option(help="tokens of the head, the most said ones (default 6144, or --init's own)")
    ] = None,
    hidden: Annotated[
        int | None, typer.Option(help="width of a stand-alone drafter (default 256, or --init's)")
    ] = None,
    layers: Annotated[int | None, typer.Option(help="layers of a stand-alone drafter (default 4, or --init's)")] = None,
    rows: Annotated[int, typer.Option(help="packed rows in a batch")] = 2,
    length: Annotated[int, typer.Option(help="tokens in a row")] = 512,
    learning_rate: Annotated[float, typer.Option(help="the highest")] = 2e-3,
    evaluate_every: Annotated[int, typer.Option(help="steps between looks at the held-out answers")] = 100,
    patience: Annotated[int, typer.Option(help="looks without a better one before it stops early")] = 12,
    storage: Annotated[str, typer.Option(help="float32, bfloat16 or int8")] = "int8",
    seed: Annotated[int, typer.Option(help="of everything drawn")] = 0,
    plot: Annotated[Path | None, typer.Option(help="draw loss and acceptance here (.png or .svg)")] = None,
    dtype: opt.Dtype = "auto",
    device: opt.Device = "cpu",
    threads: opt.Threads = None,
    json: opt.AsJson = False,
) -> None:
    """Train a drafter for TARGET: text, then the target's answers, then the target's own probabilities."""
    from lope.engine.opening import set_threads
    from lope.models.loading import load
    from lope.training.lessons import Lessons
    from lope.training.school import School
    from lope.training.team import team_here
    from lope.training.trainer import TrainerSettings

    team = team_here()
    with _one_voice(team, as_json=json):
        place = team.device(device)
        if threads is not None:
            set_threads(threads)
        if plot is not None:
            from lope.training.training_plot import check_picture

            check_picture(plot)
        lessons = Lessons(
            vocab=vocab,
            **_made(kind, opt.given(hidden=hidden, layers=layers), init),
            loss=loss,
            output=Lessons.output if init is None else 0.0,  # one begun before has learned from plain answers
            length=length,
            rows=rows,
            seed=seed,
            storage=storage,
        )
        settings = TrainerSettings(
            minutes=minutes,
            steps=steps,
            learning_rate=learning_rate,
            evaluate_every=evaluate_every,
            patience=patience,
        )
        silent = json or team.rank > 0
        sets = tuple(distilled or ())
        model = load(target, dtype=dtype, device=place, progress=not silent)
        school = School(model, out, lessons, settings, sets=sets, prompts=prompts, text=text, init=init, team=team)
        last = _follow(school, silent=silent)
        team.leave()
        if team.rank == 0:
            _report(school, last, plot, as_json=json)


@contextmanager
def _one_voice(team: "Team", *, as_json: bool) -> Iterator[None]:
    """What ends it is said by process 0; what ends another one alone, by that one, later. All have the exit code."""
    try:
        yield
    except LopeError as error:
        team.leave()
        if team.rank == 0:
            raise
        time.sleep(_SAID)  # a launcher ends all as soon as one has ended
        fail(f"process {team.rank}: {error}", exit_code=error.exit_code)
    except KeyboardInterrupt:
        if team.rank == 0:
            words = "interrupted: what was finished is kept, and the same command goes on from there"
            fail(words, exit_code=130, as_json=as_json)
        raise SystemExit(130) from None


def _report(school: "School", last: dict[str, Any] | None, plot: Path | None, *, as_json: bool) -> None:
    """Write training.json and the plot, and say where the drafter is and what it is worth."""
    out = school.out
    document = {"out": str(out), "kind": school.lessons.kind, **school.figures(), "last": last}
    try:
        (out / "training.json").write_text(json_text.dumps(document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise RunError(f"{out}: cannot be written: {error.strerror or error}") from None
    if plot is not None:
        from lope.training.training_plot import plot_training

        plot_training(out / "log.jsonl", plot)
    if as_json:
        print_json(document)
    else:
        held_out = ", ".join(f"{value:.3f}" for value in document["held_out"])
        words = f"drafter: {out}\nsteps: {document['steps']}"
        if last is None:
            words += "\nnothing was left to do: more --steps or --minutes go on from here; "
            words += "more --patience, where held-out acceptance had stopped rising"
        elif last["step"] > document["steps"]:
            words += f", the best by held-out answers; {last['step']} were made"
            if last["step"] < last["planned"]:
                words += ", until acceptance had not risen for --patience looks"
        words += f"\nheld-out acceptance by position: {held_out}"
        console.print(words, markup=False, soft_wrap=True)


def _made(kind: str | None, sizes: dict[str, int], init: Path | None) -> dict[str, Any]:
    """Kind and sizes, those of the drafter to begin from where they are not asked for.

    Raises UsageError where a feature drafter is given a size (it has the target's), or `init` has another one.
    """
    if init is not None:
        from lope.models.drafter_folder import DrafterFolder

        about = DrafterFolder.read(init).about
        kind = kind or about.kind
        if about.kind == kind == "standalone":
            had = {"hidden": about.decoder.hidden_size, "layers": about.decoder.num_layers}
            for name, size in sizes.items():
                if size != had[name]:
                    raise UsageError(f"{init}: its --{name} is {had[name]}, not {size}: leave it out")
            sizes = {**had, "context": about.decoder.context}
    if sizes and kind == "eagle":
        raise UsageError(f"a feature drafter is as wide as its target: leave out --{next(iter(sizes))}")
    return {"kind": kind or "standalone", **sizes}


def _follow(school: "School", *, silent: bool) -> dict[str, Any] | None:
    """Run it under a progress bar; the last line of the log."""
    last = None
    with LongRun(silent=silent) as shown:
        for event in school.run():
            shown.show(event.stage, event.done, event.words)
            last = event.row or last
    return last
