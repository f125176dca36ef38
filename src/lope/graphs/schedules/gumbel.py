"""The untrained sampler: critical path plus Gumbel noise, best of N schedules.

The baseline that the papers leave out. It is Jeon et al. 2023's one-shot sampler without a network: logits are the
standardised critical path times `scale`. On TPC-H-50 its best of 256 beats PPO-BiHyb and the trained network's greedy
order, so a learned sampler is of interest only where it beats this.
"""

from dataclasses import dataclass

import numpy as np

from lope.core.checks import at_least
from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.schedules.batch import check_decoder, decode, makespans
from lope.graphs.schedules.machines import Machines
from lope.graphs.schedules.paths import tails
from lope.graphs.schedules.schedule import Schedule


@dataclass(frozen=True)
class GumbelSchedule:
    """Best of `samples` orders; `scale` 0 is a random order, infinity the critical path itself.

    decoder     `list`, the papers' one, or `insertion`, which prefers a larger scale (about 50)
    """

    samples: int = 256
    scale: float = 6.0
    decoder: str = "list"
    seed: int = 0
    engine: str = "auto"
    processes: int = 1

    def __post_init__(self) -> None:
        at_least("samples", self.samples, 1)
        at_least("scale", self.scale, 0)
        at_least("seed", self.seed, 0)
        check_decoder(self.decoder)

    def schedule(self, graph: Graph, machines: Machines) -> Schedule:
        """The best schedule found; of equal ones the first."""
        machines.check(graph)
        logits = self.scale * standardised(tails(graph))
        orders = gumbel_orders(logits, self.samples, np.random.default_rng(self.seed))
        costs = makespans(graph, machines, orders, decoder=self.decoder, engine=self.engine, processes=self.processes)
        return decode(graph, machines, orders[costs.argmin()], self.decoder)


def standardised(values: Floats) -> Floats:
    """[n] values with mean 0 and standard deviation 1; zeros where all are equal."""
    spread = values.std()
    scaled: Floats = (values - values.mean()) / (spread if spread > 0 else 1.0)
    return scaled


def gumbel_orders(logits: Floats, num_orders: int, stream: np.random.Generator) -> Ints:
    """[num_orders, n] argsort_desc(logits + Gumbel noise).

    −log of a standard exponential is a Gumbel variable: sorting E · exp(−logit) upwards sorts logit + Gumbel downwards.
    """
    noise = stream.standard_exponential((num_orders, len(logits)))
    orders: Ints = np.argsort(np.log(noise) - logits, axis=1)
    return orders
