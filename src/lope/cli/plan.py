"""`lope plan`: order a computation graph for memory, schedule one on machines, reproduce the tables of the papers."""

import importlib
from typing import Any

import typer
from typer.core import TyperGroup

SUBVERBS = {
    "order": "lope.cli.plan_order:app",
    "schedule": "lope.cli.plan_schedule:app",
    "bench": "lope.cli.plan_bench:app",
}


class PlanVerbs(TyperGroup):
    """The subcommands of `lope plan`, each imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The subcommands, in the order of the table."""
        return list(SUBVERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a subcommand's module and turn its Typer app into a command."""
        if cmd_name not in SUBVERBS:
            return None
        module, _, attribute = SUBVERBS[cmd_name].partition(":")
        command = typer.main.get_command(getattr(importlib.import_module(module), attribute))
        command.name = cmd_name
        return command


app = typer.Typer(cls=PlanVerbs, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def plan() -> None:
    """Order a computation graph for memory, or schedule it on machines."""
