"""`lope drafter export`: use a drafter with vLLM, SGLang or transformers; check a folder for their traps."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lope.cli import options as opt
from lope.cli.output import console, fail, print_json
from lope.core.errors import UsageError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="a drafter folder; with --check one that was exported, by whomever")],
    to: Annotated[str | None, typer.Option(help="vllm, sglang or transformers")] = None,
    out: Annotated[Path | None, typer.Option(help="the new folder")] = None,
    target: Annotated[
        str | None, typer.Option(help="the target, as --model takes it; default: the one the drafter names")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="only name each trap that FOLDER falls into")] = False,
    json: opt.AsJson = False,
) -> None:
    """Write a drafter in the form that another engine reads, or check such a folder; exit 1 where it has a trap."""
    if check:
        if to is not None or out is not None:
            raise UsageError("--check writes nothing: leave out --to and --out")
        _check(folder, target, as_json=json)
        return
    if to is None or out is None:
        raise UsageError(
            "name the engine (--to vllm, sglang or transformers) and the new folder (--out DIR), or --check"
        )
    _export(folder, to, out, target, as_json=json)


def _export(folder: Path, engine: str, out: Path, target: str | None, *, as_json: bool) -> None:
    from lope.models.drafter_folder import DrafterFolder
    from lope.training.export.export import Export

    done = Export.of(DrafterFolder.read(folder), engine, out.expanduser(), target=target)
    document = {
        "drafter": str(folder),
        "to": engine,
        "form": done.form,
        "out": str(done.out),
        "target": done.verifier,
        "files": list(done.files),
        "bytes": done.num_bytes,
        "command": done.command,
    }
    if as_json:
        print_json(document)
        return
    console.print(f"{done.out}: {', '.join(done.files)} ({done.num_bytes / 1e6:.1f} MB)", markup=False, soft_wrap=True)
    console.print(f"target: {done.verifier}", markup=False, soft_wrap=True)
    console.print(f"use it: {done.command}", markup=False, soft_wrap=True)


def _check(folder: Path, target: str | None, *, as_json: bool) -> None:
    from lope.training.export.trap_check import TrapCheck

    known: dict[str, Any] = {}
    if target is not None:
        from lope.models.loading import open_checkpoint

        checkpoint = open_checkpoint(target)
        known = {
            "num_layers": checkpoint.config.num_layers,
            "embedding": checkpoint.tensors["model.embed_tokens.weight"],
        }
    found = TrapCheck.of(folder.expanduser(), **known)
    traps = [{"name": trap.name, "loaders": list(trap.loaders), "says": trap.says} for trap in found.traps]
    document = {"folder": str(folder), "form": found.form, "readers": list(found.readers), "traps": traps}
    for trap in () if as_json else found.traps:
        console.print(trap.line, markup=False, soft_wrap=True)
    if found.traps:
        count = len(found.traps)
        said = f"{folder}: falls into {count} trap{'s' if count > 1 else ''}"
        fail(said, exit_code=1, as_json=as_json, document=document)
    if as_json:
        print_json(document)
    else:
        readers = ", ".join(found.readers)
        console.print(f"{folder}: no trap found; {readers} read this form", markup=False, soft_wrap=True)
