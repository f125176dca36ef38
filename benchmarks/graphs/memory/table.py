"""Peak memory of orders: the table of docs/graphs.md, over layered graphs and the exported real ones.

    python benchmarks/graphs/memory/table.py --out benchmarks/graphs/memory/results.json
    python benchmarks/graphs/memory/table.py --large          # times at 100,000 nodes

One process, one thread. Every repeat goes into the result file; the printed table has means over the graphs of a set.
"""

import argparse
import json
import os
import platform
import subprocess
import time
from pathlib import Path
from statistics import mean

import numpy as np

from lope.graphs import ORDERS
from lope.graphs.errors import GraphError
from lope.graphs.generators.layered import LayeredGraphs
from lope.graphs.graph import Graph
from lope.graphs.graph_json import read_graph_json
from lope.graphs.memory import peak_lower_bound, peak_memory
from lope.version import __version__

FOLDER = Path(__file__).parent
METHODS = ("as_given", "bfs", "dfs", "xla_list", "lpmf", "greedy", "beam", "best")
QUICK = METHODS[:6]


def measure(graph: Graph, methods: list[str]) -> dict:
    """Peak and seconds of every method on one graph; None where a method gave up."""
    row: dict = {"graph": graph.name, "num_nodes": graph.num_nodes, "num_edges": graph.num_edges}
    row |= {"lower_bound": peak_lower_bound(graph), "peak": {}, "seconds": {}}
    for method in methods:
        started = time.perf_counter()
        try:
            row["peak"][method] = peak_memory(graph, ORDERS.make(method).order(graph))
        except GraphError:
            row["peak"][method] = None
        row["seconds"][method] = time.perf_counter() - started
    return row


def provenance() -> dict:
    """What a figure needs to be judged."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    threads = os.environ.get("OMP_NUM_THREADS", "default")
    machine = {"machine": platform.machine(), "cpus": os.cpu_count(), "python": platform.python_version()}
    return machine | {"threads": threads, "numpy": np.__version__, "lope": __version__, "commit": commit}


def show(name: str, rows: list[dict], methods: list[str]) -> None:
    """One markdown line: mean peak of each method, and its mean gap to beam in per cent."""
    cells = []
    for method in methods:
        pairs = [(row["peak"][method], row["peak"].get("beam")) for row in rows if row["peak"][method] is not None]
        if not pairs:
            cells.append("-")
            continue
        peak = mean(pair[0] for pair in pairs)
        shown = f"{peak / 2**20:.2f}" if peak >= 2**22 else f"{peak / 1000:.1f}k"
        gap = "" if pairs[0][1] is None else f" ({100 * mean(one / beam - 1 for one, beam in pairs):+.1f})"
        missing = "" if len(pairs) == len(rows) else f" [{len(pairs)}/{len(rows)}]"
        cells.append(shown + gap + missing)
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def large() -> None:
    """Seconds at 100,000 nodes: every heuristic, and one evaluation."""
    n = 100_000
    rng = np.random.default_rng(0)
    pairs = np.sort(rng.integers(0, n, (3 * n, 2)), axis=1)
    pairs[:, 1] = np.minimum(pairs[:, 1], pairs[:, 0] + 500)
    sparse = Graph.build(pairs[pairs[:, 0] < pairs[:, 1]], output_bytes=rng.integers(1, 1000, n), name="sparse")
    for graph in (sparse, LayeredGraphs(num_nodes=n, count=1).graphs()[0]):
        for method in QUICK:
            started = time.perf_counter()
            order = ORDERS.make(method).order(graph)
            ordered = time.perf_counter()
            peak_memory(graph, order)
            took = time.perf_counter() - ordered
            print(
                f"{graph.name} n={n} e={graph.num_edges} {method}: order {ordered - started:.2f} s, peak {took:.3f} s"
            )


def main() -> None:
    """Measure, print, and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sizes", type=int, nargs="*", default=[50, 100, 250, 500, 1000, 2000])
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=10.0, help="limit of `best`")
    parser.add_argument("--exact", type=int, default=100, help="run `exact` up to this many nodes")
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    if given.large:
        large()
        return
    methods = [f"best:seconds={given.seconds:g}" if method == "best" else method for method in given.methods]
    found: dict = {"settings": vars(given) | {"out": str(given.out)}, **provenance(), "sets": {}}
    print("| graphs | " + " | ".join([*methods, "exact"]) + " |\n|" + "---|" * (len(methods) + 2))
    sets = {f"layered {n}": LayeredGraphs(num_nodes=n, count=given.count).graphs() for n in given.sizes}
    sets |= {path.name[: -len(".json.gz")]: [read_graph_json(path)] for path in sorted(FOLDER.glob("*.json.gz"))}
    for name, graphs in sets.items():
        chosen = [*methods, *(["exact"] if graphs[0].num_nodes <= given.exact else [])]
        found["sets"][name] = [measure(graph, chosen) for graph in graphs]
        show(name, found["sets"][name], chosen)
        if given.out is not None:
            given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
