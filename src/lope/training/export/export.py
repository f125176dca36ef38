"""Writes a drafter in the form that another engine reads, checks it, and puts it in its place whole."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import safetensors

from lope.core.errors import RunError, UsageError
from lope.models.drafter_folder import DrafterFolder
from lope.training.export.llama_model import LlamaModel
from lope.training.export.plain_eagle import PlainEagle
from lope.training.export.speculators_eagle import SpeculatorsEagle
from lope.training.export.trap_check import TrapCheck
from lope.training.export.verifier import Verifier
from lope.training.model_card import run_line

ENGINES = ("vllm", "sglang", "transformers")
_CARD = "README.md"


class Form(Protocol):
    """One form of a drafter on disk."""

    @property
    def name(self) -> str:
        """`plain`, `speculators` or `llama`."""

    @property
    def verifier(self) -> Verifier:
        """The target, as the engine finds it."""

    def write(self, path: Path) -> None:
        """Make the folder."""

    def command(self, path: Path) -> str:
        """How to use it."""


@dataclass(frozen=True)
class Export:
    """What was written. files: their names; num_bytes: of them all; command: how to use it with the engine."""

    out: Path
    form: str
    verifier: str
    command: str
    files: tuple[str, ...]
    num_bytes: int

    @classmethod
    def of(cls, drafter: DrafterFolder, engine: str, out: Path, *, target: str | None = None) -> "Export":
        """Write `drafter` into the new folder `out` for an engine: `vllm`, `sglang` or `transformers`.

        target: the model it drafts for, where it is not the one that its folder names.
        Raises UsageError for what an engine cannot express, and for a folder that is there already; RunError where the
        disk is full. Nothing half-written stays.
        """
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{out}: is there already; name a new folder with --out")
        form = _form(drafter, engine, target or drafter.about.target.name)
        partial = out.with_name(f".{out.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)  # what a killed export left
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            form.write(partial)
            if (drafter.path / _CARD).is_file():
                card = (drafter.path / _CARD).read_text(encoding="utf-8")
                own = run_line(drafter.about.target.name, drafter.about.kind)
                (partial / _CARD).write_text(card.replace(own, f"    {form.command(out.resolve())}"), encoding="utf-8")
            _refuse_traps(drafter, form, partial)
            partial.replace(out)
        except (OSError, safetensors.SafetensorError) as error:
            reason = error.strerror or error if isinstance(error, OSError) else error
            raise RunError(f"{out}: cannot be written: {reason}") from None
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        files = sorted(path for path in out.iterdir())
        return cls(
            out=out,
            form=form.name,
            verifier=form.verifier.name,
            command=form.command(out.resolve()),
            files=tuple(path.name for path in files),
            num_bytes=sum(path.stat().st_size for path in files),
        )


def _form(drafter: DrafterFolder, engine: str, target: str) -> Form:
    if engine not in ENGINES:
        raise UsageError(f"no engine {engine!r} to export to (there are: {', '.join(ENGINES)})")
    verifier = Verifier.named(target, drafter.about.target)
    if drafter.about.kind == "standalone":
        return LlamaModel.of(drafter, verifier, target, engine)
    if engine == "transformers":
        raise UsageError(
            f"{drafter.path}: is a feature drafter, and transformers has no EAGLE-3 class to load it into; "
            "--to vllm or --to sglang can be served"
        )
    return PlainEagle(drafter, verifier) if engine == "sglang" else SpeculatorsEagle(drafter, verifier)


def _refuse_traps(drafter: DrafterFolder, form: Form, path: Path) -> None:
    """A drafter that some engine would misread however it is written is not exported."""
    if drafter.about.kind != "eagle":
        return
    traps = TrapCheck.of(path, num_layers=drafter.about.target.num_layers).traps
    if traps:
        raise UsageError(f"{drafter.path}: cannot be exported as it is: {traps[0].line}")
