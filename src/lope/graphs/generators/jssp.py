"""Job-shop instances of Jeon et al. 2023 (openreview WL8FlAugqQ), table 1: the exact test and training sets.

They come from the generator of Zhang et al. 2020 (L2D, arXiv 2010.12367): uniform times, every job visits all
machines in a random order. One legacy NumPy stream with seed 0 makes 150 instances of each size in turn; of each 150
the first 100 are for training and the last 50 for testing.
"""

from dataclasses import dataclass

import numpy as np

from lope.core.errors import SettingError
from lope.graphs.graph import Graph
from lope.graphs.schedules.machines import Machines

SIZES = ((25, 10), (25, 20), (25, 30), (50, 10), (50, 20), (50, 30))
NUM_INSTANCES, NUM_TRAIN = 150, 100


@dataclass(frozen=True)
class JobShops:
    """The instances of one size: `num_jobs` jobs of `num_machines` operations; `split` is `train` or `test`."""

    num_jobs: int = 25
    num_machines: int = 20
    split: str = "test"

    def __post_init__(self) -> None:
        if (self.num_jobs, self.num_machines) not in SIZES:
            raise SettingError(f"jssp sets are {', '.join(f'{jobs}x{machines}' for jobs, machines in SIZES)}")
        if self.split not in ("train", "test"):
            raise SettingError(f"jssp split is train or test, not {self.split!r}")

    @property
    def machines(self) -> Machines:
        """One machine of each type."""
        return Machines((1,) * self.num_machines)

    def graphs(self) -> list[Graph]:
        """The 100 training or 50 test graphs. Node `job * num_machines + k` is the job's k-th operation."""
        stream = np.random.RandomState(0)
        for size in SIZES:
            instances = [_instance(stream, *size) for _ in range(NUM_INSTANCES)]
            if size == (self.num_jobs, self.num_machines):
                chosen = slice(0, NUM_TRAIN) if self.split == "train" else slice(NUM_TRAIN, None)
                return [job_shop(times, visits) for times, visits in instances[chosen]]
        raise AssertionError("checked in __post_init__")


def job_shop(times: np.ndarray, visits: np.ndarray, name: str = "jssp") -> Graph:
    """The graph of one instance: `times` and `visits` (machine numbers from 0) are [num_jobs, num_operations]."""
    num_jobs, length = times.shape
    nodes = np.arange(num_jobs * length).reshape(num_jobs, length)
    edges = np.stack([nodes[:, :-1].ravel(), nodes[:, 1:].ravel()], axis=1)
    return Graph.build(edges, num_nodes=nodes.size, name=name, durations=times.ravel(), machine_types=visits.ravel())


def _instance(stream: np.random.RandomState, num_jobs: int, num_machines: int) -> tuple[np.ndarray, np.ndarray]:
    """Times [num_jobs, num_machines] and machines in visiting order, in the order in which L2D draws them.

    `randint(1, 99)` leaves 99 out: the paper's "times in 1..99" are 1..98. Visits are the argsort of uniform numbers.
    """
    times = stream.randint(1, 99, size=(num_jobs, num_machines))
    visits = stream.random_sample((num_jobs, num_machines)).argsort(axis=1)
    return times, visits
