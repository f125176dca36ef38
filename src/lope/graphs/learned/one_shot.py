"""One-shot priority sampling (Jeon et al. 2023, "Neural DAG Scheduling via One-Shot Priority Sampling", algorithm 1).

One forward pass gives every node a logit; `samples` Gumbel-top-k orders are scheduled, and the best is kept: S(N).
"""

from dataclasses import dataclass

import numpy as np
import torch

from lope.core.checks import above, at_least
from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.learned.active_search import active_search
from lope.graphs.learned.network import PriorityNetwork
from lope.graphs.learned.problem import Problem
from lope.graphs.learned.schedule_problem import ScheduleProblem
from lope.graphs.learned.weights import load_network
from lope.graphs.schedules.batch import check_decoder, decode
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.schedule import Schedule


@dataclass(frozen=True)
class OneShotSchedule:
    """S(`samples`) of a trained network; 0 samples is its greedy order.

    weights     a shipped name or a file; `auto` is `tpch` for one machine type and `jssp` for several
    decoder     `list`, the paper's and the one the shipped weights were trained with, or `insertion`
    steps       rounds of active search, each of `samples` orders, in place of the one round of the paper
    """

    weights: str = "auto"
    samples: int = 256
    decoder: str = "list"
    steps: int = 0
    rate: float = 0.3
    seed: int = 0
    engine: str = "auto"

    def __post_init__(self) -> None:
        at_least("samples", self.samples, 0)
        at_least("steps", self.steps, 0)
        above("rate", self.rate, 0)
        at_least("seed", self.seed, 0)
        check_decoder(self.decoder)

    def schedule(self, graph: Graph, machines: Machines) -> Schedule:
        """The best schedule of the sampled orders; of equal ones the first."""
        machines.check(graph)
        name = self.weights
        if name == "auto":
            name = "tpch" if len(machines.capacities) == 1 else "jssp"
        network = load_network(name, "schedule")
        types = network.shape.num_types
        problem = ScheduleProblem.read(graph, machines, types, decoder=self.decoder, engine=self.engine)
        logits = compute_logits(network, problem)
        return decode(graph, machines, self._order(problem, logits), self.decoder)

    def _order(self, problem: Problem, logits: Floats) -> Ints:
        if self.samples == 0:
            return problem.greedy(logits)
        if self.steps:
            search = {"steps": self.steps, "samples": self.samples, "seed": self.seed}
            return active_search(problem, logits, rate=self.rate, **search)[0]
        orders = problem.sample(logits, self.samples, np.random.default_rng(self.seed))
        best: Ints = orders[problem.costs(orders).argmin()]
        return best


def compute_logits(network: PriorityNetwork, problem: Problem) -> Floats:
    """[n] what the network says about one problem."""
    with torch.inference_mode():
        logits: Floats = network(*problem.inputs.tensors()).double().numpy()
    return logits
