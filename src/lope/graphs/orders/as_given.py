"""The order of the file: what runs today, and the measure of all others."""

from dataclasses import dataclass

import numpy as np

from lope.graphs.graph import Graph, Ints
from lope.graphs.orders.by_priority import order_by_priority


@dataclass(frozen=True)
class AsGivenOrder:
    """Node numbers ascending; where the file lists a node before one that it uses, that node waits for it."""

    def order(self, graph: Graph) -> Ints:
        """[n] the given order, mended only where it cannot run."""
        return order_by_priority(graph, -np.arange(graph.num_nodes, dtype=np.float64))
