"""TPC-H query graphs of Jeon et al. 2023, section 4.2, out of the job data of PPO-BiHyb (Wang et al. 2021).

A graph is 50, 100 or 150 query DAGs side by side on one cluster of 6,000 executors. The data are not part of lope.
"""

import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lope.core.errors import SettingError
from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph
from lope.graphs.schedules.machines import Machines

FILE = "tpch_dags.json.gz"


@dataclass(frozen=True)
class TpchJobs:
    """One set of graphs, as `tpch-50-test`, out of `data` (a file, or a folder that holds it; none: $LOPE_DATA)."""

    name: str = "tpch-50-test"
    data: str | None = None

    @property
    def machines(self) -> Machines:
        """One machine type with the capacity that the file states."""
        return Machines((int(_read(locate(self.data))["capacity"]),))

    def graphs(self) -> list[Graph]:
        """The graphs of the set. Raises SettingError without data or on an unknown set, GraphError on a broken file."""
        document = _read(locate(self.data))
        if self.name not in document["sets"]:
            raise SettingError(f"tpch sets are {', '.join(document['sets'])}, not {self.name!r}")
        try:
            members = document["sets"][self.name]
            return [
                _side_by_side(f"{self.name}-{k}", [document["jobs"][job] for job in m]) for k, m in enumerate(members)
            ]
        except (KeyError, TypeError) as error:
            raise GraphError(f"{self.name}: the TPC-H file lacks {error}") from None


def locate(data: str | None) -> Path:
    """The data file. Raises SettingError that says how to name it."""
    given = data or os.environ.get("LOPE_DATA")
    if not given:
        raise SettingError(f"TPC-H data are not part of lope: give --data FILE or set LOPE_DATA (a folder with {FILE})")
    path = Path(given)
    path = path / FILE if path.is_dir() else path
    if not path.is_file():
        raise SettingError(f"no TPC-H data at {path}")
    return path


def _read(path: Path) -> dict[str, Any]:
    try:
        with gzip.open(path, "rt") as file:
            document = json.load(file)
    except (OSError, EOFError, ValueError) as error:
        raise GraphError(f"{path} is not the gzipped JSON of TPC-H jobs: {error}") from None
    if not isinstance(document, dict) or not {"capacity", "jobs", "sets"} <= document.keys():
        raise GraphError(f"{path} lacks capacity, jobs or sets")
    return document


def _side_by_side(name: str, jobs: list[dict[str, Any]]) -> Graph:
    """One graph of disjoint jobs, numbered job after job."""
    durations: list[float] = []
    resources: list[int] = []
    edges: list[tuple[int, int]] = []
    for job in jobs:
        offset = len(durations)
        durations += job["duration"]
        resources += job["resource"]
        edges += [(before + offset, after + offset) for before, after in job["edges"]]
    return Graph.build(edges, num_nodes=len(durations), name=name, durations=durations, resources=resources)
