"""Topoformer orders for peak memory (Gagrani et al. 2022, arXiv 2207.05899): greedy, sampled, or by beam search.

The network starts from, and reads, the best order of the quick heuristics, so that order is always a candidate:
no decoder but `greedy` is ever worse than the best heuristic.
"""

from dataclasses import dataclass

import numpy as np

from lope.core.checks import at_least
from lope.core.errors import SettingError
from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph, Ints
from lope.graphs.learned.beam import policy_beam
from lope.graphs.learned.memory_problem import MemoryProblem
from lope.graphs.learned.one_shot import compute_logits
from lope.graphs.learned.weights import load_network

MOST_NODES = 5000


@dataclass(frozen=True)
class TopoformerOrder:
    """`greedy` takes the highest logit; `sample` the best of `samples` orders; `beam` also a policy beam of `width`.

    The beam's floor is a little (3 %) below the best sample, so that the policy leads it as far as that peak.
    """

    weights: str = "layered"
    decoder: str = "beam"
    samples: int = 256
    width: int = 16
    seed: int = 0
    engine: str = "auto"

    def __post_init__(self) -> None:
        at_least("samples", self.samples, 1)
        at_least("width", self.width, 1)
        at_least("seed", self.seed, 0)
        if self.decoder not in ("greedy", "sample", "beam"):
            raise SettingError(f"decoder must be greedy, sample or beam, not {self.decoder!r}")

    def order(self, graph: Graph) -> Ints:
        """[n] node numbers. Raises GraphError above 5,000 nodes: seven n × n relations would not fit."""
        if graph.num_nodes > MOST_NODES:
            raise GraphError(f"{graph.name}: Topoformer takes up to {MOST_NODES} nodes, not {graph.num_nodes}")
        if graph.num_nodes == 0:
            return np.zeros(0, dtype=np.int64)
        problem = MemoryProblem.read(graph, self.engine)
        logits = compute_logits(load_network(self.weights, "memory"), problem)
        greedy = problem.greedy(logits)
        if self.decoder == "greedy":
            return greedy
        sampled = problem.sample(logits, self.samples, np.random.default_rng(self.seed))
        candidates = np.concatenate([problem.known_order[None], greedy[None], sampled])
        costs = problem.costs(candidates)
        best: Ints = candidates[costs.argmin()]
        if self.decoder == "sample":
            return best
        found = policy_beam(graph, logits, self.width, floor=int(0.97 * costs.min()))
        return min((best, found), key=lambda order: float(problem.costs(order[None])[0]))
