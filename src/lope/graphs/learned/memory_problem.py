"""The memory problem: topological orders, node by node, cost their peak memory (Gagrani et al. 2022)."""

from dataclasses import dataclass

import numpy as np
import torch

from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.learned.memory_features import memory_features
from lope.graphs.learned.peaks import peaks
from lope.graphs.learned.problem import Inputs
from lope.graphs.learned.relations import seven_relations
from lope.graphs.learned.sequential import sample_sequential, weighted_sequential_score
from lope.graphs.orders.best_of import HEURISTICS, lowest
from lope.graphs.orders.by_priority import order_by_priority
from lope.graphs.schedules.gumbel import standardised


@dataclass(frozen=True, eq=False)
class MemoryProblem:
    """Peak memory of an order; the warm start is the place in the best heuristic order, first place highest."""

    graph: Graph
    known_order: Ints
    inputs: Inputs
    engine: str = "auto"

    @classmethod
    def read(cls, graph: Graph, engine: str = "auto") -> "MemoryProblem":
        """Run the quick heuristics and compute what the network reads."""
        known = lowest(graph, [rule.order(graph) for rule in HEURISTICS])
        relations = seven_relations(graph)
        reach = relations[0] | relations[2] | relations[4]
        place = np.empty(graph.num_nodes)
        place[known] = np.arange(graph.num_nodes)
        inputs = Inputs(
            torch.from_numpy(memory_features(graph, reach, known)),
            torch.from_numpy(relations),
            torch.from_numpy(standardised(-place).astype(np.float32)),
        )
        return cls(graph, known, inputs, engine)

    def sample(self, logits: Floats, num_orders: int, stream: np.random.Generator) -> Ints:
        """[num_orders, n] orders drawn node by node from the ready ones."""
        return sample_sequential(self.graph, logits, num_orders, stream, engine=self.engine)

    def greedy(self, logits: Floats) -> Ints:
        """[n] always the ready node with the highest logit."""
        return order_by_priority(self.graph, logits)

    def score(self, logits: Floats, orders: Ints, weights: Floats) -> Floats:
        """[n] the weighted score of the sequential policy."""
        return weighted_sequential_score(self.graph, logits, orders, weights, engine=self.engine)

    def costs(self, orders: Ints) -> Floats:
        """[num_orders] peak bytes."""
        return peaks(self.graph, orders).astype(np.float64)
