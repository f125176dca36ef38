import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from lope.graphs.graph import Graph


def simulate(graph: Graph, order: Sequence[int]) -> list[int]:
    """Bytes held while each node runs, by the words of lope.graphs.memory and nothing else."""
    held: dict[int, int] = {}
    finished: set[int] = set()
    users = [[int(v) for u, v in graph.use_edges if u == node] for node in range(graph.num_nodes)]
    during = []
    for node in order:
        held[node] = int(graph.output_bytes[node])
        during.append(sum(held.values()) + int(graph.scratch_bytes[node]))
        finished.add(node)
        for other in list(held):
            if not graph.kept[other] and all(user in finished for user in users[other]):
                del held[other]
    return during


def all_orders(graph: Graph) -> Iterator[tuple[int, ...]]:
    """Every order in which the graph can run; for at most nine nodes."""

    def extend(done: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(done) == graph.num_nodes:
            yield done
        for node in range(graph.num_nodes):
            if node not in done and all(int(first) in done for first in graph.predecessors(node)):
                yield from extend((*done, node))

    return extend(())


def brute_force_peak(graph: Graph) -> int:
    return min(max(simulate(graph, order), default=0) for order in itertools.islice(all_orders(graph), 500_000))


@pytest.fixture(scope="session")
def simulated() -> Callable[[Graph, Sequence[int]], list[int]]:
    return simulate


@pytest.fixture(scope="session")
def least_peak() -> Callable[[Graph], int]:
    known: dict[int, tuple[Graph, int]] = {}

    def look_up(graph: Graph) -> int:
        if id(graph) not in known:
            known[id(graph)] = (graph, brute_force_peak(graph))
        return known[id(graph)][1]

    return look_up


@pytest.fixture(scope="session")
def xla_graph() -> Graph:
    """The graph drawn in XLA's hlo_memory_scheduler.cc: B and F make 2, the others 1; G's own result is not drawn."""
    return Graph.build(
        [(0, 1), (0, 3), (0, 4), (1, 2), (2, 6), (3, 5), (4, 5), (5, 6)],
        names="ABCDEFG",
        output_bytes=[1, 2, 1, 1, 1, 2, 0],
        name="xla",
    )


def random_graph(rng: np.random.Generator, num_nodes: int) -> Graph:
    """Random in every attribute that memory depends on; node numbers are no topological order."""
    number = rng.permutation(num_nodes)
    upper = np.triu(rng.random((num_nodes, num_nodes)) < rng.uniform(0.1, 0.6), 1)
    pairs = np.array([(number[a], number[b]) for a, b in zip(*np.nonzero(upper), strict=True)]).reshape(-1, 2)
    carries = rng.random(len(pairs)) < (0.8 if rng.random() < 0.3 else 1.1)
    return Graph.build(
        pairs[carries],
        order_edges=pairs[~carries],
        num_nodes=num_nodes,
        output_bytes=rng.integers(0, 10, num_nodes),
        scratch_bytes=rng.integers(0, 4, num_nodes) * rng.integers(0, 2),
        kept=rng.random(num_nodes) < 0.3 if rng.random() < 0.5 else None,
    )


def chained_graph(rng: np.random.Generator, num_nodes: int) -> Graph:
    """A few chains between a source and a sink: where runs of several nodes matter."""
    ends = np.sort(rng.choice(np.arange(2, num_nodes - 1), size=min(2, num_nodes - 4), replace=False))
    chains = np.split(np.arange(1, num_nodes - 1), ends - 1)
    edges = [pair for chain in chains for pair in itertools.pairwise([0, *chain.tolist(), num_nodes - 1])]
    return Graph.build(
        edges,
        num_nodes=num_nodes,
        output_bytes=rng.integers(0, 12, num_nodes),
        scratch_bytes=rng.integers(0, 6, num_nodes),
    )


@pytest.fixture(scope="session")
def small_graphs() -> list[Graph]:
    """120 graphs of 1 to 8 nodes; brute force can tell the best peak of each."""
    rng = np.random.default_rng(0)
    loose = [random_graph(rng, int(rng.integers(1, 8))) for _ in range(80)]
    return loose + [chained_graph(rng, int(rng.integers(5, 10))) for _ in range(40)]
