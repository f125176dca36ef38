import numpy as np
import pytest
from scipy import stats

from lope.graphs import GENERATORS
from lope.graphs.generators.costs import DEVIATIONS, MEANS, WEIGHTS, draw_costs

FAMILIES = ["layered", "erdos_renyi", "stochastic_block"]


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_seeded_graphs(name):
    make = lambda: GENERATORS.make(f"{name}:num_nodes=60,count=2,seed=4").graphs()  # noqa: E731
    for one, two in zip(make(), make(), strict=True):
        assert one.num_nodes == 60
        assert one.edges.tolist() == two.edges.tolist()
        assert one.output_bytes.tolist() == two.output_bytes.tolist()
        assert one.output_bytes.min() >= 0
        assert one.durations.min() >= 1


def test_erdos_renyi_density_is_the_binomial_one():
    n, chance = 300, 0.05
    counts = [graph.num_edges for graph in GENERATORS.make(f"erdos_renyi:num_nodes={n},density={chance}").graphs()]
    pairs = len(counts) * n * (n - 1) // 2
    assert stats.binomtest(sum(counts), pairs, chance).pvalue > 1e-4


def test_blocks_are_dense_inside_and_thin_between():
    n = 240
    inside = across = 0
    graphs = GENERATORS.make(f"stochastic_block:num_nodes={n}").graphs()
    for graph in graphs:
        block = np.arange(n) * 4 // n
        same = block[graph.edges[:, 0]] == block[graph.edges[:, 1]]
        inside, across = inside + int(same.sum()), across + int((~same).sum())
    pairs_inside = len(graphs) * 4 * 60 * 59 // 2
    assert stats.binomtest(inside, pairs_inside, 0.3).pvalue > 1e-4
    assert stats.binomtest(across, len(graphs) * n * (n - 1) // 2 - pairs_inside, 0.001).pvalue > 1e-4


def test_edges_follow_a_random_order_not_the_numbers():
    graph = GENERATORS.make("erdos_renyi:num_nodes=200,count=1").graphs()[0]
    upwards = int((graph.edges[:, 0] < graph.edges[:, 1]).sum())
    assert 0.3 < upwards / graph.num_edges < 0.7


def test_sizes_follow_the_positive_part_of_the_mixture():
    costs = draw_costs(np.random.default_rng(0), 40_000)

    def chance_below(size: np.ndarray) -> np.ndarray:
        parts = list(zip(WEIGHTS, MEANS, DEVIATIONS, strict=True))
        below = sum(w * (stats.norm.cdf(size, m, s) - stats.norm.cdf(0, m, s)) for w, m, s in parts)
        return below / sum(w * stats.norm.sf(0, m, s) for w, m, s in parts)

    assert stats.kstest(costs.output_bytes / 1000, chance_below).statistic < 0.012
    shares = np.bincount(costs.machine_types, minlength=3) / 40_000
    assert shares == pytest.approx([1 / 6, 1 / 6, 2 / 3], abs=0.01)


def test_duration_and_size_are_one_draw():
    costs = draw_costs(np.random.default_rng(1), 100)
    assert np.abs((costs.durations - 1) * 10 - costs.output_bytes).max() <= 10
