"""A command group whose verbs are imported when they are asked for, so that `lope --help` costs no torch."""

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperGroup


def lazy_verbs(table: Mapping[str, str]) -> type[TyperGroup]:
    """A class for `typer.Typer(cls=...)`. table: verb -> "module:app"; verbs whose module is absent are left out."""

    class LazyVerbs(TyperGroup):
        """The verbs of one table."""

        def list_commands(self, ctx: Any) -> list[str]:
            """The verbs, in the order of the table."""
            return [verb for verb, place in table.items() if _there(place)]

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            """Import the verb and turn its Typer app into a command."""
            if cmd_name not in table or not _there(table[cmd_name]):
                return None
            module, _, attribute = table[cmd_name].partition(":")
            command = typer.main.get_command(getattr(importlib.import_module(module), attribute))
            command.name = cmd_name
            return command

    return LazyVerbs


def _there(place: str) -> bool:
    return importlib.util.find_spec(place.partition(":")[0]) is not None
