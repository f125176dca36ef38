"""The seven relations split all ordered pairs, and each is what its name says."""

import networkx as nx
import numpy as np
import pytest

from lope.graphs.graph import Graph
from lope.graphs.learned.relations import NAMES, seven_relations


def random_graph(seed: int, n: int = 25) -> Graph:
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(n)
    edges = [(shuffled[i], shuffled[j]) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.12]
    return Graph.build(edges, num_nodes=n)


def splits_all_pairs(relations: np.ndarray) -> bool:
    n = relations.shape[1]
    return bool((relations.sum(axis=0) == 1 - np.eye(n)).all())


@pytest.mark.parametrize("seed", range(8))
def test_each_relation_is_its_definition(seed: int) -> None:
    graph = random_graph(seed)
    relations = dict(zip(NAMES, seven_relations(graph), strict=True))
    assert splits_all_pairs(np.stack(list(relations.values())))
    reference = nx.DiGraph(graph.edges.tolist())
    reference.add_nodes_from(range(graph.num_nodes))
    closure = nx.to_numpy_array(nx.transitive_closure_dag(reference), nodelist=range(25)).astype(bool)
    reduction = nx.to_numpy_array(nx.transitive_reduction(reference), nodelist=range(25)).astype(bool)
    edges = nx.to_numpy_array(reference, nodelist=range(25)).astype(bool)
    assert (relations["reduction"] == reduction).all()
    assert (relations["redundant"] == (edges & ~reduction)).all()
    assert (relations["far"] == (closure & ~edges)).all()
    for name in ("reduction", "redundant", "far"):
        assert (relations[f"{name}_reversed"] == relations[name].T).all()
    assert (relations["incomparable"] == ~(closure | closure.T | np.eye(25, dtype=bool))).all()


@pytest.mark.parametrize("missing", range(7))
def test_mutant_without_one_relation_does_not_split_the_pairs(missing: int) -> None:
    graph = Graph.build([(0, 1), (1, 2), (0, 2), (2, 3)], num_nodes=5)
    relations = seven_relations(graph)
    assert relations.any(axis=(1, 2)).all()
    relations[missing] = False
    assert not splits_all_pairs(relations)


def test_graphs_without_edges_or_nodes() -> None:
    assert seven_relations(Graph.build([], num_nodes=0)).shape == (7, 0, 0)
    assert seven_relations(Graph.build([], num_nodes=3)).sum() == 6
