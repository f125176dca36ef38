"""Erdős–Rényi graphs made acyclic by a random node order, as in Jeon et al. 2023 (openreview WL8FlAugqQ), F.1."""

from dataclasses import dataclass

import numpy as np

from lope.core.checks import at_least, between
from lope.graphs.generators.costs import draw_costs
from lope.graphs.graph import Bools, Graph, Ints


@dataclass(frozen=True)
class ErdosRenyiGraphs:
    """`count` graphs in which every pair of nodes has an edge with chance `density`, directed along a random order."""

    num_nodes: int = 1000
    density: float = 0.05
    count: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("num_nodes", self.num_nodes, 1)
        between("density", self.density, 0, 1)
        at_least("count", self.count, 1)
        at_least("seed", self.seed, 0)

    def graphs(self) -> list[Graph]:
        """The graphs; graph k depends on (seed, k) and the settings alone."""
        return [self._graph(k) for k in range(self.count)]

    def _graph(self, number: int) -> Graph:
        rng = np.random.default_rng([self.seed, number])
        edges = along_random_order(rng, self.num_nodes, np.full((1, 1), self.density), np.zeros(self.num_nodes, int))
        return with_costs(rng, edges, self.num_nodes, f"erdos-renyi-{self.num_nodes}-{number}")


def along_random_order(rng: np.random.Generator, num_nodes: int, chances: np.ndarray, block: Ints) -> Ints:
    """[num_edges, 2] edges: pair (u, v) has one with chance `chances[block[u], block[v]]`, from the earlier node."""
    order = rng.permutation(num_nodes)
    pairs = []
    for place in range(num_nodes - 1):
        node, later = order[place], order[place + 1 :]
        hit: Bools = rng.random(len(later)) < chances[block[node], block[later]]
        pairs.append(np.stack([np.full(int(hit.sum()), node), later[hit]], axis=1))
    return np.concatenate(pairs) if pairs else np.zeros((0, 2), dtype=np.int64)


def with_costs(rng: np.random.Generator, edges: Ints, num_nodes: int, name: str) -> Graph:
    """A graph with these edges and random costs."""
    costs = draw_costs(rng, num_nodes)
    return Graph.build(
        edges,
        num_nodes=num_nodes,
        name=name,
        durations=costs.durations,
        machine_types=costs.machine_types,
        output_bytes=costs.output_bytes,
    )
