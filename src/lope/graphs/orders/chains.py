"""Which nodes a search may run in one go without losing an optimal order.

In a chain u -> v -> w, where each is used by the next alone and the next waits for it alone, there is an optimal order
that, once it has run u at a cost, goes on to where the chain holds least: pausing half way holds more for no gain (the
hills and valleys of Liu 1987, "An application of generalized tree pebbling to sparse matrix factorization").
"""

from dataclasses import dataclass

import numpy as np

from lope.graphs.graph import Graph


@dataclass(frozen=True)
class Stop:
    """A place along a chain that holds less than all before it, seen from just after the chain's first node.

    rise     most bytes held on the way from there to here, above those held just after the first node
    change   bytes held here minus those held just after the first node, not above 0
    nodes    the nodes after the first, up to here
    """

    rise: int
    change: int
    nodes: tuple[int, ...]


def chain_stops(graph: Graph) -> list[tuple[Stop, ...]]:
    """For every node, the stops along the chain that it begins, ever lower; the first is the node itself."""
    following = _following(graph)
    # What nobody uses and nobody keeps is gone once its node has run.
    is_used = np.bincount(graph.use_edges[:, 0], minlength=graph.num_nodes) > 0
    sizes = np.where(is_used | graph.kept, graph.output_bytes, 0).tolist()
    needs = (graph.output_bytes + graph.scratch_bytes).tolist()
    found: list[tuple[Stop, ...]] = []
    for first in range(graph.num_nodes):
        stops = [Stop(0, 0, ())]
        rise, nodes, node = 0, [], first
        while following[node] >= 0:
            rise = max(rise, sizes[node] - sizes[first] + needs[following[node]])
            node = following[node]
            nodes.append(node)
            if sizes[node] - sizes[first] <= stops[-1].change:
                stops.append(Stop(rise, sizes[node] - sizes[first], tuple(nodes)))
        found.append(tuple(stops))
    return found


def _following(graph: Graph) -> list[int]:
    """The next node of each node's chain; -1 where the chain ends."""
    uses = graph.use_edges
    num_users = np.bincount(uses[:, 0], minlength=graph.num_nodes)
    following = np.full(graph.num_nodes, -1, dtype=np.int64)
    in_chain = (num_users[uses[:, 0]] == 1) & ~graph.kept[uses[:, 0]] & (graph.in_degrees[uses[:, 1]] == 1)
    following[uses[in_chain, 0]] = uses[in_chain, 1]
    nodes: list[int] = following.tolist()
    return nodes
