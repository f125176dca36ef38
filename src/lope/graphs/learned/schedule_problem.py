"""The scheduling problem: Plackett-Luce orders in one shot, makespans by list scheduling (Jeon et al. 2023)."""

from dataclasses import dataclass

import numpy as np
import torch

from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.learned.features import schedule_features
from lope.graphs.learned.plackett_luce import greedy_order, weighted_score
from lope.graphs.learned.problem import Inputs
from lope.graphs.learned.relations import seven_relations
from lope.graphs.schedules.batch import makespans
from lope.graphs.schedules.gumbel import gumbel_orders, standardised
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.paths import tails


@dataclass(frozen=True, eq=False)
class ScheduleProblem:
    """Makespan of a decoder's schedule (`list` or `insertion`); orders are Plackett-Luce (one shot)."""

    graph: Graph
    machines: Machines
    inputs: Inputs
    decoder: str = "list"
    engine: str = "auto"

    @classmethod
    def read(
        cls, graph: Graph, machines: Machines, num_types: int, *, decoder: str = "list", engine: str = "auto"
    ) -> "ScheduleProblem":
        """Compute what the network reads. `num_types` is the network's number of one-hot machine types."""
        machines.check(graph)
        relations = seven_relations(graph)
        reach = relations[0] | relations[2] | relations[4]
        inputs = Inputs(
            torch.from_numpy(schedule_features(graph, machines, reach, num_types)),
            torch.from_numpy(relations),
            torch.from_numpy(standardised(tails(graph)).astype(np.float32)),
        )
        return cls(graph, machines, inputs, decoder, engine)

    @property
    def known_order(self) -> Ints:
        """[n] critical path first."""
        return greedy_order(tails(self.graph))

    def sample(self, logits: Floats, num_orders: int, stream: np.random.Generator) -> Ints:
        """[num_orders, n] Gumbel-top-k orders."""
        return gumbel_orders(logits, num_orders, stream)

    def greedy(self, logits: Floats) -> Ints:
        """[n] logits downwards."""
        return greedy_order(logits)

    def score(self, logits: Floats, orders: Ints, weights: Floats) -> Floats:
        """[n] the weighted Plackett-Luce score."""
        return weighted_score(logits, orders, weights)

    def costs(self, orders: Ints) -> Floats:
        """[num_orders] makespans."""
        return makespans(self.graph, self.machines, orders, decoder=self.decoder, engine=self.engine)
