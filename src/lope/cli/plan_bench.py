"""`lope plan bench`: the tables of the papers, method by method."""

import typer

from lope.cli.output import console, print_json
from lope.core.errors import SettingError
from lope.graphs.tables import FAMILIES, Table, compare
from lope.version import __version__

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

USUAL = {"jssp": "cp,spt,mopnr,gumbel", "tpch": "cp,spt,mopnr,heft,gumbel", "layered": "bfs,dfs,xla_list,lpmf,beam"}


@app.command()
def bench(
    family: str = typer.Argument(..., help=f"One of {', '.join(FAMILIES)}."),
    name: str = typer.Option(..., "--set", help="25x30 or 25x30-train, tpch-50-test, or a number of nodes (layered)."),
    methods: str | None = typer.Option(None, help="Parts with settings, as cp,gumbel:samples=64,scale=3,heft."),
    data: str | None = typer.Option(None, help="The TPC-H file or its folder (default: $LOPE_DATA)."),
    limit: int | None = typer.Option(None, min=1, help="Only the first so many graphs."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
) -> None:
    """Compare methods over a set of graphs: mean makespan or peak memory, seconds per graph."""
    if family not in FAMILIES:
        raise SettingError(f"bench families are {', '.join(FAMILIES)}, not {family!r}")
    table = compare(family, name, split_methods(methods or USUAL[family]), data=data, limit=limit)
    if as_json:
        print_json(_document(table))
    else:
        _show(table)


def split_methods(text: str) -> list[str]:
    """`a,b:x=1,y=2,c` is three methods: a piece with `=` and no `:` goes on with the settings before it."""
    found: list[str] = []
    for piece in filter(None, text.split(",")):
        if found and "=" in piece and ":" not in piece:
            found[-1] += f",{piece}"
        else:
            found.append(piece.strip())
    if not found:
        raise SettingError("name at least one method, as --methods cp,spt")
    return found


def _document(table: Table) -> dict[str, object]:
    return {
        "family": table.family,
        "set": table.name,
        "num_graphs": table.num_graphs,
        "lower_bound": table.lower_bound,
        "mean": table.mean,
        "seconds": table.seconds,
        "every": table.every,
        "lope_version": __version__,
    }


def _show(table: Table) -> None:
    what = "peak bytes" if table.family == "layered" else "makespan"
    console.print(f"{table.family} {table.name}: mean {what} of {table.num_graphs} graphs, seconds a graph")
    width = max(len(method) for method in [*table.mean, "lower bound"])
    for method, mean in table.mean.items():
        console.print(f"{method:<{width}} {mean:14.2f} {table.seconds[method]:10.4f}", markup=False)
    console.print(f"{'lower bound':<{width}} {table.lower_bound:14.2f}")
