"""The masked sequential policy: a distribution over topological orders, with the gradient that is claimed."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from lope.core.errors import UsageError
from lope.graphs.compiled import compiler
from lope.graphs.graph import Graph
from lope.graphs.learned.beam import policy_beam
from lope.graphs.learned.peaks import peaks
from lope.graphs.learned.sequential import replay, sample_sequential, weighted_sequential_score
from lope.graphs.memory import peak_memory
from lope.graphs.orders.by_priority import order_by_priority

ENGINES = ["python", *(["compiled"] if compiler() else [])]
LOGITS = np.array([0.3, -1.2, 2.0, 0.0, 0.9, -0.4])
GRAPH = Graph.build([(0, 2), (0, 3), (1, 3), (3, 5)], num_nodes=6)


def all_topological(graph: Graph) -> np.ndarray:
    orders = []
    for order in itertools.permutations(range(graph.num_nodes)):
        place = {v: k for k, v in enumerate(order)}
        if all(place[before] < place[after] for before, after in graph.edges.tolist()):
            orders.append(order)
    return np.array(orders)


def by_definition(graph: Graph, logits: np.ndarray, order: list[int]) -> float:
    done: set[int] = set()
    found = 0.0
    for node in order:
        ready = [v for v in range(graph.num_nodes) if v not in done and {int(u) for u in graph.predecessors(v)} <= done]
        found += logits[node] - math.log(sum(math.exp(logits[v]) for v in ready))
        done.add(node)
    return found


def random_graph(seed: int, n: int) -> Graph:
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 3 / n]
    flip = [pair for k, pair in enumerate(pairs) if k % 5 == 0]
    return Graph.build(
        [pair for pair in pairs if pair not in flip],
        order_edges=flip,
        num_nodes=n,
        output_bytes=rng.integers(0, 50, n),
        scratch_bytes=rng.integers(0, 9, n),
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_probabilities_of_all_topological_orders_sum_to_one(engine: str) -> None:
    orders = all_topological(GRAPH)
    found, _ = replay(GRAPH, LOGITS, orders, engine=engine)
    assert np.exp(found).sum() == pytest.approx(1.0, abs=1e-12)
    assert found == pytest.approx([by_definition(GRAPH, LOGITS, order) for order in orders.tolist()])


@pytest.mark.parametrize("engine", ENGINES)
def test_samples_have_these_frequencies(engine: str) -> None:
    orders, count = all_topological(GRAPH), 20_000
    keys = {tuple(order): index for index, order in enumerate(orders.tolist())}
    drawn = sample_sequential(GRAPH, LOGITS, count, np.random.default_rng(0), engine=engine)
    seen = np.bincount([keys[tuple(row)] for row in drawn.tolist()], minlength=len(orders))
    expected = count * np.exp(replay(GRAPH, LOGITS, orders)[0])
    rare = expected < 5
    pooled = [np.append(counts[~rare], counts[rare].sum()) for counts in (seen, expected)]
    assert chisquare(*pooled).pvalue > 1e-4


@pytest.mark.parametrize("engine", ENGINES)
def test_score_is_the_gradient_of_the_log_probability(engine: str) -> None:
    orders = sample_sequential(GRAPH, LOGITS, 4, np.random.default_rng(1))
    weights = np.array([0.5, -1.0, 2.0, 0.1])
    score = weighted_sequential_score(GRAPH, LOGITS, orders, weights, engine=engine)
    for node in range(6):
        step = np.zeros(6)
        step[node] = 1e-5
        change = replay(GRAPH, LOGITS + step, orders)[0] - replay(GRAPH, LOGITS - step, orders)[0]
        assert score[node] == pytest.approx(weights @ change / 2e-5, abs=1e-7)


@pytest.mark.skipif(compiler() is None, reason="no C compiler on this machine")
def test_compiled_and_python_agree_to_the_last_bit() -> None:
    graph = random_graph(0, 60)
    logits = np.random.default_rng(0).normal(size=60) * 3
    drawn = [sample_sequential(graph, logits, 20, np.random.default_rng(5), engine=engine) for engine in ENGINES]
    assert (drawn[0] == drawn[1]).all()
    scored = [replay(graph, logits, drawn[0], engine=engine) for engine in ENGINES]
    assert scored[0][1].tolist() == scored[1][1].tolist()
    assert scored[0][0] == pytest.approx(scored[1][0], abs=1e-12)


def test_a_policy_beam_finds_nothing_below_the_optimum() -> None:
    graph = random_graph(1, 7)
    least = min(peak_memory(graph, order) for order in all_topological(graph))
    assert policy_beam(graph, np.zeros(7), 2**7, ceiling=least) is None


def test_greedy_takes_the_likeliest_ready_node() -> None:
    # Ready 0, 1, 4: 4 (0.9); then 0 (0.3); then 2 (2.0); then 1; then 3; then 5.
    assert order_by_priority(GRAPH, LOGITS).tolist() == [4, 0, 2, 1, 3, 5]


def test_what_is_no_order_or_no_logits_is_refused() -> None:
    with pytest.raises(UsageError, match="before"):
        replay(GRAPH, LOGITS, np.array([[2, 0, 1, 3, 4, 5]]))
    for wrong in (np.array([np.nan] * 6), np.zeros(5), np.array([0, 0, 0, 0, 0, 1e4])):
        with pytest.raises(UsageError, match="logits"):
            sample_sequential(GRAPH, wrong, 1, np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(4))
def test_peaks_of_many_orders_are_the_peaks_one_by_one(seed: int) -> None:
    graph = random_graph(seed, 40)
    orders = sample_sequential(graph, np.zeros(40), 10, np.random.default_rng(seed))
    assert peaks(graph, orders).tolist() == [peak_memory(graph, order) for order in orders]


@pytest.mark.parametrize("seed", range(4))
def test_a_wide_policy_beam_is_the_optimum_whatever_the_policy(seed: int) -> None:
    graph = random_graph(seed, 7)
    least = min(peak_memory(graph, order) for order in all_topological(graph))
    logits = np.random.default_rng(seed).normal(size=7)
    assert peak_memory(graph, policy_beam(graph, logits, 2**7)) == least


def test_a_narrow_policy_beam_above_every_peak_is_the_greedy_order() -> None:
    graph = random_graph(9, 30)
    logits = np.arange(30.0)
    free = Graph.build(graph.edges, num_nodes=30, output_bytes=[1] * 30, kept=[True] * 30)
    assert policy_beam(free, logits, 1, floor=10**9).tolist() == order_by_priority(free, logits).tolist()
