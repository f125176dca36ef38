"""What an order is: a rule that puts the nodes of a graph in a sequence."""

from typing import Protocol

from lope.graphs.graph import Graph, Ints


class Orderer(Protocol):
    """A rule with frozen settings. One that can go on for ever has a setting `seconds`."""

    def order(self, graph: Graph) -> Ints:
        """[n] node numbers, each after all that it uses; the same graph always gives the same order."""
        ...
