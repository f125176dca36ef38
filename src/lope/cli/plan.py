"""`lope plan`: order a computation graph for memory, schedule one on machines, reproduce the tables of the papers."""

import typer

from lope.cli.lazy_verbs import lazy_verbs

SUBVERBS = {
    "order": "lope.cli.plan_order:app",
    "schedule": "lope.cli.plan_schedule:app",
    "bench": "lope.cli.plan_bench:app",
}

app = typer.Typer(cls=lazy_verbs(SUBVERBS), no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def plan() -> None:
    """Order a computation graph for memory, or schedule it on machines."""
