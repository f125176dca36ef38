"""Which nodes a search may run in one go without losing an optimal order.

In a chain u -> v -> w, where each is used by the next alone and the next waits for it alone, there is an optimal order
that, once it has run u at a cost, goes on to a place that holds no more than all places before it: pausing on the way
holds more for no gain (the hills and valleys of Liu 1987, "An application of generalized tree pebbling to sparse matrix
factorization").
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lope.graphs.graph import Graph

# How far a chain is followed: every place above is a place to stop, so a limit costs no optimal order.
LONGEST = 32


class Stop(NamedTuple):
    """A place along a chain that holds less than all before it, seen from just after the chain's first node.

    rise     most bytes held on the way from there to here, above those held just after the first node
    change   bytes held here minus those held just after the first node, not above 0
    steps    how many nodes further this is
    """

    rise: int
    change: int
    steps: int


@dataclass(frozen=True)
class Chains:
    """For every node the one that follows it in its chain (-1: none), and the stops along it, ever lower.

    The first stop is the node itself.
    """

    following: list[int]
    stops: list[tuple[Stop, ...]]

    @classmethod
    def of(cls, graph: Graph) -> "Chains":
        """The chains of a graph."""
        following = _following(graph)
        # What nobody uses and nobody keeps is gone once its node has run.
        is_used = np.bincount(graph.use_edges[:, 0], minlength=graph.num_nodes) > 0
        sizes = np.where(is_used | graph.kept, graph.output_bytes, 0).tolist()
        needs = (graph.output_bytes + graph.scratch_bytes).tolist()
        return cls(following, [_stops(node, following, sizes, needs) for node in range(graph.num_nodes)])

    def nodes(self, first: int, steps: int) -> tuple[int, ...]:
        """`first` and the `steps` nodes after it."""
        found = [first]
        for _ in range(steps):
            found.append(self.following[found[-1]])
        return tuple(found)


def _stops(first: int, following: list[int], sizes: list[int], needs: list[int]) -> tuple[Stop, ...]:
    stops = [Stop(0, 0, 0)]
    rise, node = 0, first
    for steps in range(1, LONGEST + 1):
        if following[node] < 0:
            break
        rise = max(rise, sizes[node] - sizes[first] + needs[following[node]])
        node = following[node]
        change = sizes[node] - sizes[first]
        if change < stops[-1].change:
            stops.append(Stop(rise, change, steps))
        elif (rise, change) == stops[-1][:2]:
            stops[-1] = Stop(rise, change, steps)
    return tuple(stops)


def _following(graph: Graph) -> list[int]:
    uses = graph.use_edges
    num_users = np.bincount(uses[:, 0], minlength=graph.num_nodes)
    following = np.full(graph.num_nodes, -1, dtype=np.int64)
    in_chain = (num_users[uses[:, 0]] == 1) & ~graph.kept[uses[:, 0]] & (graph.in_degrees[uses[:, 1]] == 1)
    following[uses[in_chain, 0]] = uses[in_chain, 1]
    nodes: list[int] = following.tolist()
    return nodes
