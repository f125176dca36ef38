"""`lope`: the command line. Verbs are imported when they are asked for, so that `lope --help` costs no torch."""

import os
import sys
from collections.abc import Sequence
from typing import Any

import typer

from lope.cli.lazy_verbs import lazy_verbs
from lope.cli.output import fail, print_json
from lope.core.errors import LopeError
from lope.version import __version__

VERBS: dict[str, str] = {
    "run": "lope.cli.run:app",
    "chat": "lope.cli.chat:app",
    "list": "lope.cli.list:app",
    "check": "lope.cli.check:app",
    "calibrate": "lope.cli.calibrate:app",
    "drafter": "lope.cli.drafter:app",
    "learn": "lope.cli.learn:app",
    "plan": "lope.cli.plan:app",
    "bench": "lope.cli.bench:app",
}


app = typer.Typer(
    cls=lazy_verbs(VERBS),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Makes a language model answer faster on the hardware you already have, without changing its answers.",
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def lope(version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True)) -> None:
    """Makes a language model answer faster on the hardware you already have, without changing its answers."""


def main(arguments: Sequence[str] | None = None) -> Any:
    """Run the command line; a LopeError becomes one clear line and its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return app(args=arguments)
    except LopeError as error:
        fail(str(error), exit_code=error.exit_code, as_json="--json" in arguments)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        # what cannot be written is stdout itself: verbs report their own files as LopeErrors
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        fail(f"the output cannot be written: {error.strerror or error}", exit_code=1)
    except KeyboardInterrupt:
        fail("interrupted", exit_code=130, as_json="--json" in arguments)
    except SystemExit as end:
        if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            # Typer makes an exit of it, without a word
            fail("interrupted", exit_code=130, as_json="--json" in arguments)
        # bad usage: Typer has said so on stderr, before any verb could print its document
        says = getattr(end.__context__, "format_message", None)
        if says is not None and "--json" in arguments:
            print_json({"error": says()})
        raise
