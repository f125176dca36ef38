"""One-shot priority sampling (Jeon et al. 2023, "Neural DAG Scheduling via One-Shot Priority Sampling", algorithm 1).

One forward pass gives every node a logit; `samples` Gumbel-top-k orders are scheduled, and the best is kept: S(N).
"""

from dataclasses import dataclass

import numpy as np
import torch

from lope.core.checks import at_least
from lope.graphs.graph import Floats, Graph
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
    """

    weights: str = "auto"
    samples: int = 256
    decoder: str = "list"
    seed: int = 0
    engine: str = "auto"

    def __post_init__(self) -> None:
        at_least("samples", self.samples, 0)
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
        if self.samples == 0:
            return decode(graph, machines, problem.greedy(logits), self.decoder)
        orders = problem.sample(logits, self.samples, np.random.default_rng(self.seed))
        return decode(graph, machines, orders[problem.costs(orders).argmin()], self.decoder)


def compute_logits(network: PriorityNetwork, problem: Problem) -> Floats:
    """[n] what the network says about one problem."""
    with torch.inference_mode():
        logits: Floats = network(*problem.inputs.tensors()).double().numpy()
    return logits
