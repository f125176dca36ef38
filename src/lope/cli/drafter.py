"""`lope drafter`: teach a drafter for a target, trim it, measure it, hand it to other engines."""

import typer

from lope.cli.lazy_verbs import lazy_verbs

SUBVERBS = {
    "distill": "lope.cli.drafter_distill:app",
    "train": "lope.cli.drafter_train:app",
    "trim": "lope.cli.drafter_trim:app",
    "eval": "lope.cli.drafter_eval:app",
    "export": "lope.cli.drafter_export:app",
}

app = typer.Typer(cls=lazy_verbs(SUBVERBS), no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def drafter() -> None:
    """Teach a drafter for a target, trim it, measure it, hand it to other engines."""
