"""Best of all: run several rules, keep the order with the lowest peak (inductor and XLA do the same)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from lope.core.checks import above
from lope.graphs.graph import Graph, Ints
from lope.graphs.memory import peak_memory
from lope.graphs.orders.as_given import AsGivenOrder
from lope.graphs.orders.beam import beam_order, improve
from lope.graphs.orders.breadth_first import BreadthFirstOrder
from lope.graphs.orders.depth_first import DepthFirstOrder
from lope.graphs.orders.greedy_memory import GreedyMemoryOrder
from lope.graphs.orders.lpmf import LpmfOrder
from lope.graphs.orders.orderer import Orderer
from lope.graphs.orders.xla_list import XlaListOrder

HEURISTICS: tuple[Orderer, ...] = (
    AsGivenOrder(),
    BreadthFirstOrder(),
    DepthFirstOrder(),
    XlaListOrder(),
    LpmfOrder(),
    GreedyMemoryOrder(),
)


@dataclass(frozen=True)
class BestOfOrder:
    """The lowest peak of all heuristics, then a beam of 16 or, with `seconds`, the anytime beam for the rest.

    Never worse than the given order.
    """

    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None:
            above("seconds", self.seconds, 0)

    def order(self, graph: Graph) -> Ints:
        """[n] node numbers; of equal peaks the first rule's, so that nothing moves where nothing is gained."""
        started = time.monotonic()
        best = lowest(graph, [rule.order(graph) for rule in HEURISTICS])
        if self.seconds is None:
            return lowest(graph, [best, beam_order(graph, 16)])
        return improve(graph, best, max(0.0, self.seconds - (time.monotonic() - started)))


def lowest(graph: Graph, orders: Sequence[Ints]) -> Ints:
    """The first of the orders that have the lowest peak."""
    return min(orders, key=lambda order: peak_memory(graph, order))
