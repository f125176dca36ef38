"""Published and independently computed figures: JSSP (25,30) of Jeon et al. 2023 table 1, TPC-H of the project's notes.

The notes (`graphs_and_learning.md`, section 1.6) computed the TPC-H figures with other code, from the same job data.
"""

from pathlib import Path

import numpy as np
import pytest

from lope.core.errors import UsageError
from lope.graphs.generators.jssp import JobShops
from lope.graphs.generators.tpch import TpchJobs
from lope.graphs.schedules.batch import makespans
from lope.graphs.schedules.lower_bound import makespan_lower_bound
from lope.graphs.schedules.paths import operations_left, tails
from lope.graphs.schedules.scheduler import downwards

RULES = {"cp": tails, "spt": lambda graph: -graph.durations, "mopnr": operations_left}


def mean_makespan(source: JobShops | TpchJobs, rule: str) -> float:
    orders = [(graph, downwards(RULES[rule](graph))) for graph in source.graphs()]
    return float(np.mean([makespans(graph, source.machines, order[None])[0] for graph, order in orders]))


@pytest.mark.parametrize(("rule", "figure"), [("cp", 2588.72), ("spt", 2739.20)])
def test_job_shop_25_by_30_is_exact(rule: str, figure: float) -> None:
    assert mean_makespan(JobShops(25, 30), rule) == pytest.approx(figure, abs=1e-9)


@pytest.mark.parametrize(
    ("size", "rule", "figure"), [((25, 20), "cp", 2120.24), ((50, 20), "cp", 3290.80), ((25, 10), "spt", 1807.90)]
)
def test_other_job_shops_agree_up_to_ties(size: tuple[int, int], rule: str, figure: float) -> None:
    assert mean_makespan(JobShops(*size), rule) == pytest.approx(figure, rel=0.006)


def test_ties_to_the_later_job_are_not_the_published_figure() -> None:
    shops = JobShops(25, 30)
    orders = [(graph, np.argsort(tails(graph), kind="stable")[::-1]) for graph in shops.graphs()]
    wrong = np.mean([makespans(graph, shops.machines, order[None])[0] for graph, order in orders])
    assert abs(wrong - 2588.72) > 0.5


def test_times_run_from_1_to_98_and_every_job_visits_every_machine() -> None:
    graphs = JobShops(25, 10, "train").graphs()
    assert len(graphs) == 100
    times = np.concatenate([graph.durations for graph in graphs])
    assert (times.min(), times.max()) == (1, 98)
    visits = graphs[0].machine_types.reshape(25, 10)
    assert (np.sort(visits, axis=1) == np.arange(10)).all()


def test_unknown_job_shop_sets_are_refused() -> None:
    with pytest.raises(UsageError, match="25x10, 25x20"):
        JobShops(3, 3)
    with pytest.raises(UsageError, match="train or test"):
        JobShops(25, 10, "dev")


@pytest.mark.parametrize(
    ("jobs", "cp", "spt", "mopnr", "bound", "nodes"),
    [
        (50, 9820.5, 12700.6, 11219.8, 8460.8, 467.2),
        (100, 16853.5, 19420.1, 17731.0, 14817.3, 929.8),
        (150, 24078.3, 27331.3, 24795.7, 22197.2, 1384.5),
    ],
)
def test_tpch_figures(jobs: int, cp: float, spt: float, mopnr: float, bound: float, nodes: float, data: Path) -> None:
    source = TpchJobs(f"tpch-{jobs}-test", str(data))
    graphs = source.graphs()
    assert np.mean([graph.num_nodes for graph in graphs]) == pytest.approx(nodes, abs=0.05)
    assert [round(mean_makespan(source, rule), 1) for rule in ("cp", "spt", "mopnr")] == [cp, spt, mopnr]
    bounds = [makespan_lower_bound(graph, source.machines) for graph in graphs]
    assert round(float(np.mean(bounds)), 1) == bound
    assert max(int(graph.resources.max()) for graph in graphs) == 593


def test_absent_or_broken_tpch_data_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOPE_DATA", raising=False)
    with pytest.raises(UsageError, match="LOPE_DATA"):
        TpchJobs().graphs()
    with pytest.raises(UsageError, match="no TPC-H data at"):
        TpchJobs(data=str(tmp_path)).graphs()
    (tmp_path / "tpch_dags.json.gz").write_bytes(b"no gzip")
    with pytest.raises(UsageError, match="not the gzipped JSON"):
        TpchJobs(data=str(tmp_path)).graphs()
