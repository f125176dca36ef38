"""Stochastic block graphs made acyclic by a random node order, as in Jeon et al. 2023 (openreview WL8FlAugqQ), F.1."""

from dataclasses import dataclass

import numpy as np

from lope.core.checks import at_least, between
from lope.graphs.generators.erdos_renyi import along_random_order, with_costs
from lope.graphs.graph import Graph


@dataclass(frozen=True)
class StochasticBlockGraphs:
    """`count` graphs of `blocks` equal blocks: edges with chance `inside` within a block, `across` two."""

    num_nodes: int = 1000
    blocks: int = 4
    inside: float = 0.3
    across: float = 0.001
    count: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("num_nodes", self.num_nodes, 1)
        at_least("blocks", self.blocks, 1)
        between("inside", self.inside, 0, 1)
        between("across", self.across, 0, 1)
        at_least("count", self.count, 1)
        at_least("seed", self.seed, 0)

    def graphs(self) -> list[Graph]:
        """The graphs; graph k depends on (seed, k) and the settings alone. Node v is in block v * blocks // n."""
        return [self._graph(k) for k in range(self.count)]

    def _graph(self, number: int) -> Graph:
        rng = np.random.default_rng([self.seed, number])
        block = np.arange(self.num_nodes) * self.blocks // self.num_nodes
        chances = np.full((self.blocks, self.blocks), self.across)
        np.fill_diagonal(chances, self.inside)
        edges = along_random_order(rng, self.num_nodes, chances, block)
        return with_costs(rng, edges, self.num_nodes, f"stochastic-block-{self.num_nodes}-{number}")
