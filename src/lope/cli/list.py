"""`lope list`: every part, with one line, its paper, whether it is lossless, and its settings with defaults."""

import inspect
import re
from typing import Annotated, Any

import typer
from rich.table import Table

from lope.cli import options as opt
from lope.cli.output import console, print_json
from lope.core.errors import UsageError
from lope.core.registry import Room, written

app = typer.Typer(add_completion=False)
_YES = {True: "yes", False: "no", None: ""}
_PAPER = re.compile(r"arXiv:(\d{4}\.\d{4,5})")


@app.command("list")
def list_parts(
    room: Annotated[str | None, typer.Argument(help="one room: drafters, shapes, verifiers, ...")] = None,
    json: opt.AsJson = False,
) -> None:
    """Show every part that can be named on the command line."""
    rooms = _rooms()
    if room is not None and room not in rooms:
        raise UsageError(f"no room {room!r} (there are: {', '.join(rooms)})")
    wanted = {name: parts for name, parts in rooms.items() if room in (None, name)}
    rows = [_describe(name, parts, part) for name, parts in wanted.items() for part in parts]
    if json:
        print_json({"parts": rows})
    else:
        for name in wanted:
            console.print(_table(name, [row for row in rows if row["room"] == name]))


def _rooms() -> dict[str, Room]:
    from lope import drafters, graphs, learning, policies, shapes, stops, verifiers
    from lope.training import losses

    return {
        "drafters": drafters.DRAFTERS,
        "shapes": shapes.SHAPES,
        "stops": stops.STOPS,
        "verifiers": verifiers.VERIFIERS,
        "policies": policies.POLICIES,
        "bandits": learning.BANDITS,
        "mdp-learners": learning.MDP_LEARNERS,
        "mdps": learning.MDPS,
        "lq-learners": learning.LQ_LEARNERS,
        "lq-systems": learning.LQ_SYSTEMS,
        "generators": graphs.GENERATORS,
        "importers": graphs.IMPORTERS,
        "orders": graphs.ORDERS,
        "schedulers": graphs.SCHEDULERS,
        "losses": losses.LOSSES,
    }


# what decides which tokens come out; the other rooms know no tokens, or only how many to guess
_DECIDING = ("drafters", "shapes", "stops", "verifiers", "policies")


def _describe(room: str, parts: Room, name: str) -> dict[str, Any]:
    part = parts.part(name)
    module = inspect.getdoc(inspect.getmodule(part)) or inspect.getdoc(part) or "(its file does not say)"
    # several parts may share a module: then each class says what it is
    paper = _PAPER.search(module) or _PAPER.search(inspect.getdoc(part) or "")
    settings = [
        {
            "name": s.name,
            "type": s.type,
            "default": None if s.default is ... else s.default,
            "required": s.default is ...,
        }
        for s in parts.settings(name)
    ]
    lossless = getattr(part, "lossless", None)
    return {
        "room": room,
        "name": name,
        "summary": module.splitlines()[0],
        "paper": f"arXiv:{paper.group(1)}" if paper else None,
        "lossless": (lossless if isinstance(lossless, bool) else True) if room in _DECIDING else None,
        "settings": settings,
    }


def _table(room: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=room, title_justify="left", show_lines=False, expand=True)
    for column in ("name", "what it does", "paper", "lossless", "settings"):
        table.add_column(column, overflow="fold", no_wrap=column in ("name", "paper", "lossless"))
    for row in rows:
        settings = ", ".join(map(_spelled, row["settings"]))
        table.add_row(
            row["name"], row["summary"], (row["paper"] or "").removeprefix("arXiv:"), _YES[row["lossless"]], settings
        )
    return table


def _spelled(setting: dict[str, Any]) -> str:
    """As it is written on the command line."""
    name = setting["name"]
    return f"{name}: {setting['type']}" if setting["required"] else f"{name}={written(setting['default'])}"
