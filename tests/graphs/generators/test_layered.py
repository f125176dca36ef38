import itertools
import math

import numpy as np
import pytest

from lope.core.errors import SettingError
from lope.graphs import GENERATORS
from lope.graphs.generators import layered
from lope.graphs.generators.layered import draw_layers, layer_edges, layered_graph, skip_edges
from lope.graphs.schedules.critical_path import CriticalPathSchedule
from lope.graphs.schedules.machines import Machines

SIZES = [(1, 7), (7, 1), (1, 1), (4, 4), (5, 13), (13, 5), (20, 19), (2, 30)]


@pytest.mark.parametrize(("above", "below"), SIZES)
def test_adjacent_layers_have_exactly_the_edges_of_the_recipe(above, below):
    # round(0.2 n1 n2 + 0.8 max(n1, n2)): matched every pair of layers of the four released graphs.
    expected = round(0.2 * above * below + 0.8 * max(above, below))
    for seed in range(20):
        edges = layer_edges(np.random.default_rng(seed), np.arange(above), 100 + np.arange(below))
        assert len({tuple(edge) for edge in edges.tolist()}) == len(edges) == expected
        shares = np.bincount(edges[:, 0]) if above > below else np.bincount(edges[:, 1] - 100)
        assert shares.max() - shares.min() <= 1
        assert len(shares) == max(above, below)


def test_a_node_takes_consecutive_nodes_of_the_smaller_layer():
    edges = layer_edges(np.random.default_rng(0), np.arange(20), np.arange(20, 33))
    for node in range(20):
        taken = np.sort(edges[edges[:, 0] == node, 1])
        assert (np.diff(taken) == 1).all()


def adjacent_and_skips(seed: int, num_nodes: int) -> tuple[list, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    width = rng.uniform(0.25, 0.5)
    layers = draw_layers(rng, num_nodes, width)
    layer_of = np.concatenate([np.full(len(nodes), level) for level, nodes in enumerate(layers)])
    graph = layered_graph(np.random.default_rng(seed), num_nodes)
    spans = layer_of[graph.edges[:, 1]] - layer_of[graph.edges[:, 0]]
    return layers, graph.edges[spans == 1], graph.edges[spans != 1]


def test_a_whole_graph_has_the_counts_of_the_recipe():
    shares = []
    for seed in range(10):
        layers, adjacent, skips = adjacent_and_skips(seed, 500)
        sizes = [len(nodes) for nodes in layers]
        pairs = itertools.pairwise(sizes)
        assert len(adjacent) == sum(round(0.2 * one * two + 0.8 * max(one, two)) for one, two in pairs)
        shares.append(len(skips) / (len(skips) + len(adjacent)))
    # Seen on the released graphs: .138, .145, .136, .139.
    assert all(0.13 <= share <= 0.145 for share in shares)


def test_the_counts_tell_a_wrong_generator(monkeypatch):
    monkeypatch.setattr(layered, "DENSITY", 0.21)
    wrong = layer_edges(np.random.default_rng(0), np.arange(20), np.arange(20, 39))
    assert len(wrong) != round(0.2 * 20 * 19 + 0.8 * 20)
    monkeypatch.setattr(layered, "SKIP_SHARE", 0.2)
    _, adjacent, skips = adjacent_and_skips(0, 500)
    assert not 0.13 <= len(skips) / (len(skips) + len(adjacent)) <= 0.145


def test_skips_jump_at_least_two_layers_and_a_little_to_the_right():
    layers = [np.arange(100 * level, 100 * (level + 1)) for level in range(10)]
    skips = skip_edges(np.random.default_rng(0), layers, 4000)
    levels, places = skips // 100, skips % 100
    assert (levels[:, 1] - levels[:, 0]).min() == 2
    shift = (places[:, 1] - places[:, 0]) / 100
    assert -0.011 <= shift.min() <= shift.max() <= 0.21
    # min(x + 0.2 u, 1) - x has mean 0.1 - E[(x + 0.2 u - 1)+] = 0.1 - 0.2^2 / 6; the released graphs have 0.0865.
    assert shift.mean() == pytest.approx(0.1 - 0.04 / 6, abs=0.01)


@pytest.mark.parametrize("num_nodes", [4, 5, 30, 1000])
def test_shape(num_nodes):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        width = rng.uniform(0.25, 0.5)
        sizes = [len(nodes) for nodes in draw_layers(np.random.default_rng(seed + 1), num_nodes, width)]
        mean = num_nodes / math.ceil(math.sqrt(num_nodes * (1 / width - 1)))
        assert sizes[0] == sizes[-1] == 1
        assert sum(sizes) == num_nodes
        inner = sizes[1:-2]
        assert all(max(1, math.ceil(mean * 0.25)) <= size <= max(1, math.floor(mean * 1.75)) for size in inner)
        graph = layered_graph(np.random.default_rng(seed), num_nodes)
        assert np.flatnonzero(graph.in_degrees == 0).tolist() == [0]
        assert np.flatnonzero(graph.out_degrees == 0).tolist() == [num_nodes - 1]


def test_the_same_seed_gives_the_same_graphs_and_another_does_not():
    make = GENERATORS.make
    one, two = make("layered:num_nodes=50,count=2").graphs(), make("layered:num_nodes=50,count=3").graphs()
    assert one[1].edges.tolist() == two[1].edges.tolist()
    assert one[0].edges.tolist() != one[1].edges.tolist()
    assert make("layered:num_nodes=50,count=1,seed=9").graphs()[0].edges.tolist() != one[0].edges.tolist()


@pytest.mark.parametrize("text", ["layered:num_nodes=3", "layered:count=0", "erdos_renyi:density=1.5"])
def test_settings_out_of_range(text):
    with pytest.raises(SettingError, match="must"):
        GENERATORS.make(text)


def test_critical_path_speed_up_is_that_of_the_paper():
    # Jeon et al. 2023, table 3, layered graphs of 500 nodes on machines (1, 1, 4): CP 4.314.
    ratios = []
    for graph in GENERATORS.make("layered:num_nodes=500,count=20").graphs():
        makespan = CriticalPathSchedule().schedule(graph, Machines((1, 1, 4))).makespan
        ratios.append(graph.durations.sum() / makespan)
    assert np.mean(ratios) == pytest.approx(4.314, rel=0.04)
