"""The tables of run.sh as Markdown: `gather FILES` joins documents of `lope drafter eval`, `show FOLDER` prints all."""

import json
import sys
from pathlib import Path
from typing import Any

TEMPERATURES = ("0.3", "1.0")
SHAPES = ("chain", "independent", "rsd_c", "rsd_s")
# levels: the nodes of the trees that have so many
DEPTHS = {"2": "6", "3": "21"}


def interval(row: dict[str, Any]) -> str:
    """Tokens per pass with its bounds."""
    return f"{row['tokens_per_pass']:.2f} [{row['tokens_per_pass_low']:.2f}, {row['tokens_per_pass_high']:.2f}]"


def table(head: list[str], rows: list[list[str]]) -> str:
    """In Markdown."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]) + "\n"


def shapes(folder: Path) -> str:
    """Tokens per pass by budget (rows) and shape (columns); then by depth."""
    parts = []
    for temperature in TEMPERATURES:
        systems = json.loads((folder / f"shapes-{temperature}.json").read_text())["systems"]
        sizes = [name.removeprefix("chain") for name in systems if name.startswith("chain")]
        rows = [[size.strip(), *(interval(systems[shape + size]) for shape in SHAPES)] for size in sizes]
        parts.append(f"Temperature {temperature}:\n\n{table(['nodes', *SHAPES], rows)}")
        chains = json.loads((folder / f"depths-{temperature}.json").read_text())["systems"]
        rows = []
        for deep, size in DEPTHS.items():
            trees = (systems[f"{shape} {size}"] for shape in SHAPES[1:])
            rows.append([deep, *map(interval, (chains[f"chain {deep} deep"], *trees))])
        parts.append(table(["levels", *SHAPES], rows))
    return "\n".join(parts)


def losses(folder: Path) -> str:
    """Tokens per pass by loss (rows) and shape (columns)."""
    systems = json.loads((folder / "losses.json").read_text())["systems"]
    names = [name.split(" ") for name in systems if not name.startswith("plain")]
    columns = list(dict.fromkeys(shape for _, shape in names))
    rows = [[loss, *(interval(systems[f"{loss} {c}"]) for c in columns)] for loss in dict.fromkeys(n for n, _ in names)]
    return table(["loss", *columns], rows)


def vocabularies(folder: Path) -> str:
    """What each head is worth at its one point."""
    rows = []
    for name, point in json.loads((folder / "vocabularies.json").read_text()).items():
        _, size, counts = name.split("-")
        measured = [f"{point[key]:.2f}" for key in ("mbsu", "modelled_speedup", "speedup")]
        rows.append([size, counts, interval(point), *measured, f"{point['tokens_per_second']:.0f}"])
    rows.sort(key=lambda row: -int(row[0]))
    head = ["head", "counted", "tokens per pass", "MBSU", "modelled speed-up", "measured", "tokens/s"]
    return table(head, rows)


def gather(files: list[Path]) -> dict[str, Any]:
    """The first point of each document, by the file's name."""
    return {path.stem: json.loads(path.read_text())["points"][0] for path in files}


if __name__ == "__main__":
    if sys.argv[1] == "gather":
        print(json.dumps(gather([Path(name) for name in sys.argv[2:]]), indent=1))
    else:
        for part in (shapes, losses, vocabularies):
            print(f"## {part.__name__}\n\n{part(Path(sys.argv[2]))}")
