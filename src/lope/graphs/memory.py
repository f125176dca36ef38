"""How much memory a graph holds while it runs in a given order: the one convention of this room.

* A node's result is allocated before the node runs and before anything it uses is freed.
* Scratch bytes are held only while their node runs.
* A result is freed after the last node that uses it has run (an order edge is no use); one that
  nobody uses, after its own node has run.
* A kept result (a graph output) is never freed. Unless a graph says otherwise, what nobody uses is kept.
* There is no fragmentation, and weights are no part of the graph: they lie in memory whatever the order.

MODeL's simulator (Steiner et al. 2023), inductor's newer estimator and tflite-tools count the same way.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lope.graphs.graph import Graph, Ints


@dataclass(frozen=True, eq=False)
class Timeline:
    """What is held at every step of an order: bytes `during` step t (node running) and `after` it, both [n]."""

    order: Ints
    during: Ints
    after: Ints

    @property
    def peak(self) -> int:
        """The most bytes ever held; 0 for an empty graph."""
        return int(self.during.max(initial=0))

    @property
    def peak_step(self) -> int:
        """The first step at which the peak is held; 0 for an empty graph."""
        return int(self.during.argmax()) if len(self.during) else 0


def memory_timeline(graph: Graph, order: ArrayLike) -> Timeline:
    """Bytes held at each step of `order`, in O(num_nodes + num_edges).

    Raises GraphError unless the order has every node once, each after all that it uses.
    """
    steps = graph.check_order(order)
    size = graph.output_bytes[steps]
    freed_at = np.zeros(graph.num_nodes, dtype=np.int64)
    last = last_uses(graph, steps)
    ends = last < graph.num_nodes
    np.add.at(freed_at, last[ends], graph.output_bytes[ends])
    held = np.cumsum(size - freed_at)
    before = held - size + freed_at
    return Timeline(steps, before + size + graph.scratch_bytes[steps], held)


def last_uses(graph: Graph, order: Ints) -> Ints:
    """[n] the step after which each node's result is freed; num_nodes for a kept one."""
    position = np.empty(graph.num_nodes, dtype=np.int64)
    position[order] = np.arange(graph.num_nodes)
    last = position.copy()
    if len(uses := graph.use_edges):
        starts = np.flatnonzero(np.diff(uses[:, 0], prepend=-1))
        last[uses[starts, 0]] = np.maximum.reduceat(position[uses[:, 1]], starts)
    last[graph.kept] = graph.num_nodes
    return last


def peak_memory(graph: Graph, order: ArrayLike) -> int:
    """The most bytes that `order` ever holds."""
    return memory_timeline(graph, order).peak


def peak_lower_bound(graph: Graph) -> int:
    """No order holds less: a node needs all it uses, its result and its scratch at once; kept results stay together."""
    if not graph.num_nodes:
        return 0
    needs = graph.output_bytes + graph.scratch_bytes
    np.add.at(needs, graph.use_edges[:, 1], graph.output_bytes[graph.use_edges[:, 0]])
    return int(max(needs.max(), graph.output_bytes[graph.kept].sum()))
