"""`lope bench`: measure speed beside peers, and the quality of parts that may change answers."""

import typer

from lope.cli.lazy_verbs import lazy_verbs

SUBVERBS = {
    "speed": "lope.cli.bench_speed:app",
    "quality": "lope.cli.bench_quality:app",
}

app = typer.Typer(cls=lazy_verbs(SUBVERBS), no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def bench() -> None:
    """Measure speed beside peers, and the quality of parts that may change answers."""
