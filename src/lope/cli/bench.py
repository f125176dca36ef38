"""`lope bench`: measure speed beside peers, and the quality of parts that may change answers."""

import importlib
import importlib.util
from typing import Any

import typer
from typer.core import TyperGroup

SUBVERBS = {
    "speed": "lope.cli.bench_speed:app",
    "quality": "lope.cli.bench_quality:app",
}


class BenchVerbs(TyperGroup):
    """The subcommands of `lope bench`, each imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The subcommands, in the order of the table."""
        return [name for name in SUBVERBS if _there(name)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a subcommand's module and turn its Typer app into a command."""
        if cmd_name not in SUBVERBS or not _there(cmd_name):
            return None
        module, _, attribute = SUBVERBS[cmd_name].partition(":")
        command = typer.main.get_command(getattr(importlib.import_module(module), attribute))
        command.name = cmd_name
        return command


def _there(name: str) -> bool:
    return importlib.util.find_spec(SUBVERBS[name].partition(":")[0]) is not None


app = typer.Typer(cls=BenchVerbs, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def bench() -> None:
    """Measure speed beside peers, and the quality of parts that may change answers."""
