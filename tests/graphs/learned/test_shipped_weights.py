"""The shipped weights: small, described, and as good as issue 6 asks (figures of Jeon et al. 2023, table 1 and 2)."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from lope.core.errors import LopeError, UsageError
from lope.graphs.generators.jssp import JobShops
from lope.graphs.generators.layered import LayeredGraphs
from lope.graphs.generators.tpch import TpchJobs
from lope.graphs.graph import Graph
from lope.graphs.learned.network import NetworkShape, PriorityNetwork
from lope.graphs.learned.one_shot import OneShotSchedule
from lope.graphs.learned.recipes import RECIPES, train_recipe
from lope.graphs.learned.topoformer_order import TopoformerOrder
from lope.graphs.learned.weights import SHIPPED, load_network, read_card, save_network, shipped_names
from lope.graphs.memory import peak_memory
from lope.graphs.orders.best_of import HEURISTICS
from lope.graphs.schedules.gumbel import GumbelSchedule
from lope.graphs.schedules.machines import Machines


def test_weights_are_small_and_say_how_they_came_about() -> None:
    assert shipped_names() == sorted(RECIPES)
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) <= 4 * 2**20
    for name, recipe in RECIPES.items():
        card = read_card(SHIPPED / f"{name}.json")
        assert card["problem"] == recipe.problem
        assert card["recipe"] == json.loads(json.dumps(recipe.card()))["recipe"]
        assert card["steps"] == recipe.plan.num_steps
        assert load_network(name, recipe.problem).shape == recipe.shape


def test_job_shops_25_by_20_reach_the_bar() -> None:
    shops = JobShops(25, 20)
    found = [OneShotSchedule(samples=256).schedule(graph, shops.machines).makespan for graph in shops.graphs()]
    assert np.mean(found) <= 1950


def test_tpch_50_reaches_the_bar_and_beats_the_untrained_sampler(data: Path) -> None:
    jobs = TpchJobs("tpch-50-test", str(data))
    graphs, machines = jobs.graphs(), jobs.machines
    learned = np.mean([OneShotSchedule(samples=256).schedule(graph, machines).makespan for graph in graphs])
    untrained = np.mean([GumbelSchedule(samples=256).schedule(graph, machines).makespan for graph in graphs])
    assert learned <= 8720
    assert learned < untrained


def test_orders_are_never_worse_than_the_best_heuristic_and_better_on_layered_graphs() -> None:
    learned, known = [], []
    for graph in LayeredGraphs(120, 4).graphs():
        found = TopoformerOrder(samples=64, width=8, steps=10).order(graph)
        learned.append(peak_memory(graph, found))
        known.append(min(peak_memory(graph, rule.order(graph)) for rule in HEURISTICS))
        assert learned[-1] <= known[-1]
    assert np.mean(learned) < np.mean(known)


@pytest.mark.parametrize("decoder", ["greedy", "sample", "beam", "search"])
def test_every_decoder_gives_an_order_and_the_same_one_again(decoder: str) -> None:
    graph = LayeredGraphs(40, 1).graphs()[0]
    rule = TopoformerOrder(decoder=decoder, samples=8, width=4, steps=3)
    found = rule.order(graph)
    assert graph.check_order(found).tolist() == rule.order(graph).tolist()


def test_small_and_empty_graphs() -> None:
    rule = TopoformerOrder(samples=2, steps=1)
    assert rule.order(Graph.build([], num_nodes=0)).tolist() == []
    assert rule.order(Graph.build([], num_nodes=1, output_bytes=[3])).tolist() == [0]
    one = Graph.build([], num_nodes=1, durations=[2.0])
    assert OneShotSchedule(samples=0).schedule(one, Machines((1,))).makespan == 2.0


def test_more_samples_are_never_worse() -> None:
    shops = JobShops(25, 10)
    graph = shops.graphs()[0]
    found = [OneShotSchedule(samples=n).schedule(graph, shops.machines).makespan for n in (1, 8, 64)]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("decoder", ["list", "insertion"])
def test_active_search_goes_below_what_one_round_finds(decoder: str) -> None:
    shops = JobShops(25, 20)
    graph = shops.graphs()[0]
    one = OneShotSchedule(samples=64, decoder=decoder).schedule(graph, shops.machines)
    more = OneShotSchedule(samples=64, decoder=decoder, steps=25).schedule(graph, shops.machines)
    more.check()
    assert more.makespan < one.makespan


def test_what_is_wrong_with_weights_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no weights 'nothing'"):
        load_network("nothing", "schedule")
    with pytest.raises(UsageError, match="are for problem 'memory'"):
        load_network("layered", "schedule")
    torch.manual_seed(0)
    save_network(PriorityNetwork(NetworkShape(15, width=8)), tmp_path / "own.safetensors", {"problem": "schedule"})
    assert load_network(str(tmp_path / "own.safetensors"), "schedule").shape.width == 8
    card = read_card(tmp_path / "own.json")
    (tmp_path / "bad.safetensors").write_bytes((tmp_path / "own.safetensors").read_bytes())
    (tmp_path / "bad.json").write_text(json.dumps({**card, "shape": {**card["shape"], "width": 16}}))
    with pytest.raises(LopeError, match="does not fit its card"):
        load_network(str(tmp_path / "bad.safetensors"), "schedule")
    (tmp_path / "bad.json").unlink()
    with pytest.raises(LopeError, match="need a card"):
        load_network(str(tmp_path / "bad.safetensors"), "schedule")


def test_bad_settings_are_refused() -> None:
    for rule, settings in (
        (TopoformerOrder, {"decoder": "guess"}),
        (TopoformerOrder, {"samples": 1}),
        (TopoformerOrder, {"rate": 0}),
        (OneShotSchedule, {"steps": -1}),
        (OneShotSchedule, {"samples": -1}),
        (OneShotSchedule, {"decoder": "guess"}),
    ):
        with pytest.raises(UsageError):
            rule(**settings)
    with pytest.raises(UsageError, match="recipes are"):
        train_recipe("everything", Path("nowhere"))
