"""Topoformer orders for peak memory (Gagrani et al. 2022, arXiv 2207.05899): greedy, sampled, by beam, by search.

The network starts from, and reads, the best order of the quick heuristics, so that order is always a candidate: no
decoder but `greedy` is ever worse than the best heuristic.
"""

import time
from dataclasses import dataclass

import numpy as np

from lope.core.checks import above, at_least
from lope.core.errors import SettingError
from lope.graphs.errors import GraphError
from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.learned.active_search import active_search
from lope.graphs.learned.beam import policy_beam
from lope.graphs.learned.memory_problem import MemoryProblem
from lope.graphs.learned.one_shot import compute_logits
from lope.graphs.learned.weights import load_network
from lope.graphs.orders.beam import beam_order, improve

MOST_NODES = 5000
DECODERS = ("greedy", "sample", "beam", "search")


@dataclass(frozen=True)
class TopoformerOrder:
    """`greedy` takes the highest logit, `sample` the best of `samples` orders; `beam` adds two beams of `width`.

    One beam ranks by memory, the other follows the policy up to a peak a little (3 %) below the best sample. `search`
    does the same from the logits that `steps` rounds of active search end at. With `seconds`, the anytime beam goes on
    from there for the time that is left.
    """

    weights: str = "layered"
    decoder: str = "search"
    samples: int = 128
    width: int = 16
    steps: int = 60
    rate: float = 0.3
    seconds: float | None = None
    seed: int = 0
    engine: str = "auto"

    def __post_init__(self) -> None:
        at_least("samples", self.samples, 2)
        at_least("width", self.width, 1)
        at_least("steps", self.steps, 1)
        above("rate", self.rate, 0)
        if self.seconds is not None:
            above("seconds", self.seconds, 0)
        at_least("seed", self.seed, 0)
        if self.decoder not in DECODERS:
            raise SettingError(f"decoder must be one of {', '.join(DECODERS)}, not {self.decoder!r}")

    def order(self, graph: Graph) -> Ints:
        """[n] node numbers. Raises GraphError above 5,000 nodes: seven n × n relations would not fit."""
        if graph.num_nodes > MOST_NODES:
            raise GraphError(f"{graph.name}: Topoformer takes up to {MOST_NODES} nodes, not {graph.num_nodes}")
        if graph.num_nodes == 0:
            return np.zeros(0, dtype=np.int64)
        started = time.monotonic()
        best = self._decode(MemoryProblem.read(graph, self.engine))
        if self.seconds is None:
            return best
        return improve(graph, best, max(self.seconds - (time.monotonic() - started), 1e-3))

    def _decode(self, problem: MemoryProblem) -> Ints:
        logits = compute_logits(load_network(self.weights, "memory"), problem)
        greedy = problem.greedy(logits)
        if self.decoder == "greedy":
            return greedy
        sampled = problem.sample(logits, self.samples, np.random.default_rng(self.seed))
        best = _best(problem, [problem.known_order, greedy, *sampled])
        if self.decoder == "search":
            search = {"steps": self.steps, "samples": self.samples, "seed": self.seed}
            found, logits = active_search(problem, logits, rate=self.rate, **search)
            best = _best(problem, [best, found])
        return best if self.decoder == "sample" else self._beam(problem, logits, best)

    def _beam(self, problem: MemoryProblem, logits: Floats, known: Ints) -> Ints:
        """The best of `known` and of two beams."""
        peak = int(problem.costs(known[None])[0])
        by_policy = policy_beam(problem.graph, logits, self.width, floor=int(0.97 * peak), ceiling=peak)
        by_memory = beam_order(problem.graph, self.width)
        return _best(problem, [known, by_memory, *([] if by_policy is None else [by_policy])])


def _best(problem: MemoryProblem, orders: list[Ints]) -> Ints:
    """The first of the orders with the lowest peak."""
    stacked: Ints = np.stack(orders)
    best: Ints = stacked[problem.costs(stacked).argmin()]
    return best
