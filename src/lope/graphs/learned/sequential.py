"""Masked sequential decoding (Gagrani et al. 2022, arXiv 2207.05899, section 3.3): a topological order, node by node.

    P(σ_t = v | σ_<t) = exp(logit(v)) / Σ_{u ready} exp(logit(u)),   ready = all predecessors have run

The logits are computed once per graph, so one order costs O(n · ready nodes + edges). Its score is exact:
∂ log P / ∂ logit(v) = 1 − (the sum, over the steps at which v was ready, of the probability of taking it).
"""

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from lope.graphs.compiled import call, resolve_engine, whole
from lope.graphs.errors import GraphError
from lope.graphs.graph import Floats, Graph, Ints

SOURCE = Path(__file__).with_name("sequential.c")


def sample_sequential(
    graph: Graph, logits: ArrayLike, num_orders: int, stream: np.random.Generator, *, engine: str = "auto"
) -> Ints:
    """[num_orders, n] independent topological orders. Raises GraphError if logits span more than 600."""
    weights = _weights(graph, logits)
    uniforms = stream.random((num_orders, graph.num_nodes))
    if resolve_engine(engine) == "python":
        return np.array([_sample_one(graph, weights.tolist(), row.tolist()) for row in uniforms], dtype=np.int64)
    orders = np.empty(uniforms.shape, dtype=np.int64)
    call(SOURCE, "lope_sample", orders.shape, (uniforms, weights, *_edges(graph), orders))
    return orders


def replay(graph: Graph, logits: ArrayLike, orders: Ints, *, engine: str = "auto") -> tuple[Floats, Floats]:
    """Log-probabilities [num_orders], and the expected times that each node was taken while ready [num_orders, n].

    Raises GraphError unless every row is a topological order.
    """
    weights = _weights(graph, logits)
    for row in orders:
        graph.check_order(row)
    expected = np.zeros(orders.shape)
    found = np.zeros(len(orders))
    if resolve_engine(engine) == "python":
        for index, row in enumerate(orders.tolist()):
            found[index], expected[index] = _replay_one(graph, weights.tolist(), row)
    else:
        call(SOURCE, "lope_replay", orders.shape, (whole(orders), weights, *_edges(graph), found, expected))
    return found, expected


def weighted_sequential_score(
    graph: Graph, logits: ArrayLike, orders: Ints, weights: Floats, *, engine: str = "auto"
) -> Floats:
    """[n] the gradient Σ_k weights[k] · ∂ log P(orders[k]) / ∂ logits."""
    expected = replay(graph, logits, orders, engine=engine)[1]
    score: Floats = weights @ (1.0 - expected)
    return score


def _weights(graph: Graph, logits: ArrayLike) -> Floats:
    values = np.asarray(logits, dtype=np.float64)
    if values.shape != (graph.num_nodes,) or (len(values) and not np.ptp(values) < 600.0):
        raise GraphError(f"{graph.name}: logits must be {graph.num_nodes} finite numbers that span less than 600")
    odds: Floats = np.exp(values - values.max(initial=-np.inf))
    return odds


def _edges(graph: Graph) -> tuple[Ints, Ints, Ints]:
    return whole(graph.successor_starts), whole(graph.successor_nodes), whole(graph.in_degrees)


def _run(graph: Graph, ready: list[int], waiting: list[int], node: int) -> None:
    ready.remove(node)
    for successor in graph.successor_lists[node]:
        waiting[successor] -= 1
        if waiting[successor] == 0:
            ready.append(successor)


def _total(weights: list[float], ready: list[int]) -> float:
    """Added one by one, as C does: `sum` compensates its rounding."""
    total = 0.0
    for node in ready:
        total += weights[node]
    return total


def _sample_one(graph: Graph, weights: list[float], uniforms: list[float]) -> list[int]:
    waiting, order = graph.in_degrees.tolist(), []
    ready = [node for node, count in enumerate(waiting) if count == 0]
    for uniform in uniforms:
        left = uniform * _total(weights, ready)
        place = 0
        while place < len(ready) - 1 and left >= weights[ready[place]]:
            left -= weights[ready[place]]
            place += 1
        order.append(ready[place])
        _run(graph, ready, waiting, ready[place])
    return order


def _replay_one(graph: Graph, weights: list[float], order: list[int]) -> tuple[float, list[float]]:
    waiting, expected, found = graph.in_degrees.tolist(), [0.0] * len(order), 0.0
    ready = [node for node, count in enumerate(waiting) if count == 0]
    for node in order:
        total = _total(weights, ready)
        for other in ready:
            expected[other] += weights[other] / total
        found += float(np.log(weights[node] / total))
        _run(graph, ready, waiting, node)
    return found, expected
