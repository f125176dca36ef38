"""`lope drafter distill`: a target answers prompts, and what it thought of each token is kept to teach drafters."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from lope.cli import options as opt
from lope.cli.output import complaints, console, fail, print_json
from lope.core import checks
from lope.core.errors import LopeError, SettingError, UsageError
from lope.version import __version__

if TYPE_CHECKING:
    from lope.cli.distill_run import DistillRun
    from lope.models.loaded import LoadedModel
    from lope.training.token_archive import TokenArchive

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def distill(
    out: Annotated[Path, typer.Option(help="folder of the set; the same command again goes on where it was")],
    target: opt.Model = "smollm2",
    prompts: Annotated[str | None, typer.Option(help="a file, or own: the target writes them (default)")] = None,
    tokens: Annotated[int | None, typer.Option(help="until the set has so many answer tokens")] = None,
    minutes: Annotated[float | None, typer.Option(help="for so long at most")] = None,
    temperatures: Annotated[str | None, typer.Option(help="of the answers, in turn (default 0,0.7,1)")] = None,
    top_p: Annotated[float | None, typer.Option(help="of what is drawn (default 0.95)")] = None,
    max_new_tokens: Annotated[int | None, typer.Option(help="in an answer (default 256)")] = None,
    width: Annotated[int, typer.Option(help="conversations in a pass")] = 96,
    layers: Annotated[str, typer.Option(help="hidden states to keep: 2-15-27, none, auto")] = "auto",
    top_k: Annotated[str, typer.Option(help="probabilities kept for each answer token; auto: by measuring")] = "auto",
    seed: Annotated[int | None, typer.Option(help="of everything drawn (default 0)")] = None,
    from_tokens: Annotated[Path | None, typer.Option(help="an archive: nothing is drawn, all is computed anew")] = None,
    from_text: Annotated[Path | None, typer.Option(help="plain text that the target reads, instead of writing")] = None,
    length: Annotated[int, typer.Option(help="tokens of a sequence of --from-text")] = 384,
    to_tokens: Annotated[Path | None, typer.Option(help="pack the set's tokens into this small file")] = None,
    dtype: opt.Dtype = "auto",
    device: opt.Device = "cpu",
    threads: opt.Threads = None,
    json: opt.AsJson = False,
) -> None:
    """Let TARGET answer prompts, many at a time; keep its answers, its probabilities and its hidden states."""
    drawn = opt.given(prompts=prompts, temperatures=temperatures, top_p=top_p, max_new_tokens=max_new_tokens, seed=seed)
    document: dict[str, Any] = {"out": str(out)}
    try:
        kept: dict[str, Any] = {"layers": layers, "top_k": _top_k(top_k)}
        if _only_packs(tokens, minutes, drawn, from_tokens or from_text, to_tokens):
            document |= _pack(out, to_tokens)
        else:
            settings = _drawing(**drawn) | {"width": width}
            _refuse_launchers()
            model = _model(target, dtype, device, threads, silent=json)
            checks.between("--top-k", kept["top_k"], 0, model.backend.vocab_size)
            archive = _archive(model, from_tokens, from_text, length)
            if archive is None:
                run = _distilling(model, out, settings, kept, tokens, minutes)
            else:
                run = _replaying(model, out, archive, kept, tokens, minutes)
            _follow(run, document, silent=json)
            document |= _pack(out, to_tokens)
    except LopeError as error:
        fail(str(error), exit_code=error.exit_code, as_json=json, document=document)
    document["lope_version"] = __version__
    if json:
        print_json(document)
    else:
        _show(document)


def _only_packs(
    tokens: int | None, minutes: float | None, drawn: dict[str, Any], from_tokens: Path | None, to_tokens: Path | None
) -> bool:
    """Whether only an archive is to be written. Raises LopeError for what does not go together."""
    if tokens is not None:
        checks.at_least("--tokens", tokens, 1)
    if minutes is not None:
        checks.above("--minutes", minutes, 0.0)
    if from_tokens is not None:
        if drawn:
            names = ", ".join("--" + name.replace("_", "-") for name in drawn)
            raise UsageError(f"--from-tokens and --from-text draw nothing: leave out {names}")
        return False
    if tokens is None and minutes is None:
        if to_tokens is None:
            raise UsageError("say how much to distil: --tokens N, or --minutes M, or both (whichever comes first)")
        return True
    return False


def _refuse_launchers() -> None:
    from lope.training.team import processes_here

    if processes_here() > 1:
        raise UsageError("one process distils: begin it without a launcher")


def _top_k(text: str) -> int:
    """0 for auto."""
    if text == "auto":
        return 0
    if not text.isdecimal() or int(text) < 1:
        raise SettingError(f"--top-k is auto or a whole number of at least 1, not {text!r}")
    return int(text)


def _drawing(
    prompts: str = "own",
    temperatures: str = "0,0.7,1",
    top_p: float = 0.95,
    max_new_tokens: int = 256,
    seed: int = 0,
) -> dict[str, Any]:
    """What decides the answers, checked."""
    from lope.core.sampling import Sampling

    try:
        each = tuple(float(part) for part in temperatures.split(","))
    except ValueError:
        raise SettingError(f"--temperatures are numbers separated by commas, not {temperatures!r}") from None
    for temperature in each:
        Sampling(temperature=temperature, top_p=top_p)
    checks.at_least("max_new_tokens", max_new_tokens, 1)
    return {"prompts": prompts, "temperatures": each, "top_p": top_p, "max_new_tokens": max_new_tokens, "seed": seed}


def _layers(text: str, num_layers: int) -> tuple[int, ...]:
    from lope.training.distillation import FEWEST_LAYERS, feature_layers

    if text == "none" or (text == "auto" and num_layers < FEWEST_LAYERS):
        return ()
    if text == "auto":
        return feature_layers(num_layers)
    parts = text.split("-")
    if not all(part.isdecimal() and int(part) <= num_layers for part in parts):
        raise SettingError(f"--layers are none, auto, or numbers from 0 to {num_layers} as in 2-15-27, not {text!r}")
    return tuple(int(part) for part in parts)


def _model(target: str, dtype: str, device: str, threads: int | None, *, silent: bool) -> "LoadedModel":
    from lope.engine.opening import set_threads
    from lope.models.loading import load

    if threads is not None:
        set_threads(threads)
    return load(target, dtype=dtype, device=device, progress=not silent)


def _distilling(
    model: "LoadedModel",
    out: Path,
    settings: dict[str, Any],
    kept: dict[str, Any],
    tokens: int | None,
    minutes: float | None,
) -> "DistillRun":
    from lope.cli.distill_run import DistillRun
    from lope.training.distilled_set import DistilledSet, Manifest
    from lope.training.distiller import Distiller
    from lope.training.prompt_sources import FilePrompts, OwnPrompts, PromptSource

    prompts, seed = settings["prompts"], settings["seed"]
    source: PromptSource = OwnPrompts() if prompts == "own" else FilePrompts.read(Path(prompts), seed)
    source.opening(0, model)  # says what is wrong before there is a folder
    checks.at_least("width", settings["width"], 1)
    manifest = Manifest.begun(
        model,
        prompts=source.name,
        temperatures=settings["temperatures"],
        top_p=settings["top_p"],
        top_k=kept["top_k"],
        layers=_layers(kept["layers"], model.backend.num_layers),
        max_new_tokens=settings["max_new_tokens"],
        seed=seed,
        prompts_sha256=source.sha256,
    )
    place = DistilledSet.begin(out, manifest)
    return DistillRun(place, Distiller(model, source, place, width=settings["width"]), tokens, minutes)


def _archive(
    model: "LoadedModel", from_tokens: Path | None, from_text: Path | None, length: int
) -> "TokenArchive | None":
    """What the target is to read; None where it is to write."""
    from lope.training.prompt_sources import read_lines
    from lope.training.read_text import read_text
    from lope.training.token_archive import TokenArchive

    if from_tokens is not None and from_text is not None:
        raise UsageError("--from-tokens or --from-text: name one of them")
    if from_text is not None:
        return read_text(read_lines(from_text), from_text.name, model, length)
    return None if from_tokens is None else TokenArchive.read(from_tokens)


def _replaying(
    model: "LoadedModel",
    out: Path,
    archive: "TokenArchive",
    kept: dict[str, Any],
    tokens: int | None,
    minutes: float | None,
) -> "DistillRun":
    """Where --layers and --top-k are auto, what the archived set had is kept again, if it had something."""
    from lope.cli.distill_run import DistillRun
    from lope.training.distilled_set import DistilledSet
    from lope.training.replay import Replay

    archive.check(model)
    about = archive.manifest
    again = kept["layers"] == "auto" and about.layers
    layers = about.layers if again else _layers(kept["layers"], model.backend.num_layers)
    if max(layers, default=0) > model.backend.num_layers:
        raise UsageError(f"the archive kept layers {layers}, and {model.name} has {model.backend.num_layers}")
    manifest = replace(
        about,
        target=model.name,
        hidden_size=model.backend.hidden_size,
        top_k=kept["top_k"] or about.top_k,
        layers=layers,
        dtype=model.backend.dtype,
        outside=None,
        outside_tokens=0,
    )
    place = DistilledSet.begin(out, manifest)
    limit = min(tokens or archive.answer_tokens, archive.answer_tokens)
    return DistillRun(place, Replay(model, archive, place), limit, minutes)


def _follow(run: "DistillRun", document: dict[str, Any], *, silent: bool) -> None:
    """Run it to its end; the document tells what came of it, whatever ended it."""
    for line in run.place.mended:
        _say(line)
    try:
        interrupted = run.follow(lambda words: None if silent else _say(words), silent=silent)
    finally:
        document |= run.summary()
        run.place.close()
    if run.last is not None and not run.last.tokens:
        _say("no answer was finished in that time: give it more --minutes, or fewer conversations at once (--width)")
    if interrupted:
        words = "interrupted: what was finished is kept, and the same command goes on from there"
        fail(words, exit_code=130, as_json=silent, document=document)


def _pack(out: Path, to_tokens: Path | None) -> dict[str, Any]:
    from lope.training.distilled_set import DistilledSet
    from lope.training.token_archive import TokenArchive

    if to_tokens is None:
        return {}
    archive = TokenArchive.of(DistilledSet.open(out))
    archive.write(to_tokens)
    return {
        "archive": str(to_tokens),
        "archive_bytes": to_tokens.stat().st_size,
        "archived_sequences": len(archive.texts),
        "archived_answer_tokens": archive.answer_tokens,
    }


def _show(document: dict[str, Any]) -> None:
    if "sequences" in document:
        pace = f", {document['tokens_per_second']:.0f} a second" if document["new_answer_tokens"] else ""
        console.print(
            f"{document['sequences']:,} sequences, {document['tokens']:,} tokens, of them "
            f"{document['answer_tokens']:,} of answers, in {document['shards']} shards: {document['out']}\n"
            f"this run: {document['new_answer_tokens']:,} answer tokens in {document['seconds']:.0f} s{pace}",
            markup=False,
            soft_wrap=True,
        )
        if document["outside"] is not None:
            console.print(f"{document['outside']:.1%} of the probability lies outside the {document['top_k']} kept")
        if document["too_long"]:
            console.print(f"{document['too_long']} prompts take more than half of the context, and were left out")
    if "archive" in document:
        words = f"{document['archived_sequences']:,} sequences in {document['archive_bytes']:,} bytes"
        console.print(f"archive: {document['archive']} ({words})", markup=False, soft_wrap=True)


def _say(words: str) -> None:
    complaints.print(f"[yellow]lope:[/yellow] {escape(words)}", soft_wrap=True)
