"""Many seeds of many methods: vectorised within a process, spread over processes."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lope.core.checks import at_least
from lope.core.errors import UsageError
from lope.learning.trials import CHECKPOINTS, Trials, checkpoints, join

MOST_DRAWS = 20_000_000  # numbers drawn ahead per process: 160 MB
BLAS_THREADS = "OMP_NUM_THREADS"  # read when a process loads numpy, so only processes yet to start obey it
JOBS_PER_PROCESS = 2  # of each method: enough for the bar to move and for processes to end together


class Experiment(Protocol):
    """A picklable problem on which methods can be run by name."""

    def check(self, method: str) -> None:
        """Raise what is wrong, before anything runs."""
        ...

    def run(self, method: str, seeds: Sequence[int], steps: int, at: NDArray[np.int64]) -> Trials:
        """All seeds side by side; a seed's result does not depend on its neighbours."""
        ...


@dataclass(frozen=True)
class Study:
    """Which methods, on what, how long. Seeds are first_seed, first_seed + 1, ...; processes do not change results."""

    experiment: Experiment
    methods: tuple[str, ...]
    seeds: int = 40
    steps: int = 50_000
    first_seed: int = 0
    processes: int = 1
    points: int = CHECKPOINTS

    def __post_init__(self) -> None:
        for name in ("seeds", "steps", "processes", "points"):
            at_least(name, getattr(self, name), 1)
        at_least("first_seed", self.first_seed, 0)
        if not self.methods or len(set(self.methods)) != len(self.methods):
            raise UsageError("name at least one method, and each only once")
        for method in self.methods:
            self.experiment.check(method)

    @property
    def at(self) -> NDArray[np.int64]:
        """The checkpoints, [C]."""
        return checkpoints(self.steps, self.points)

    @property
    def jobs(self) -> list[tuple[str, tuple[int, ...]]]:
        """(method, seeds) of every piece of work, in the order of the result."""
        size = -(-self.seeds // (JOBS_PER_PROCESS * self.processes)) if self.processes > 1 else self.seeds
        size = max(1, min(size, MOST_DRAWS // self.steps))
        every = range(self.first_seed, self.first_seed + self.seeds)
        return [(m, tuple(every[start : start + size])) for m in self.methods for start in range(0, self.seeds, size)]

    def run(self, tick: Callable[[int], None] = lambda seeds: None) -> dict[str, Trials]:
        """Trials per method; `tick` is told how many seeds each finished piece of work had."""
        jobs = self.jobs
        done: list[Trials] = [_NOTHING] * len(jobs)
        if self.processes == 1:
            for index, (method, seeds) in enumerate(jobs):
                done[index] = self.experiment.run(method, seeds, self.steps, self.at)
                tick(len(seeds))
        else:
            self._spread(jobs, done, tick)
        return {m: join([part for part, job in zip(done, jobs, strict=True) if job[0] == m]) for m in self.methods}

    def _spread(self, jobs: list[tuple[str, tuple[int, ...]]], done: list[Trials], tick: Callable[[int], None]) -> None:
        # Spawned, not forked: the caller may hold threads (a progress bar does), and a fork would copy their locks.
        with (
            one_thread_each(),
            ProcessPoolExecutor(min(self.processes, len(jobs)), mp_context=get_context("spawn")) as pool,
        ):
            futures = {
                pool.submit(self.experiment.run, method, seeds, self.steps, self.at): index
                for index, (method, seeds) in enumerate(jobs)
            }
            try:
                for future in as_completed(futures):
                    done[futures[future]] = future.result()
                    tick(len(jobs[futures[future]][1]))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Processes started in here have one BLAS thread: on matrices this small, threads only wait for each other."""
    before = os.environ.get(BLAS_THREADS)
    os.environ[BLAS_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[BLAS_THREADS]
        if before is not None:
            os.environ[BLAS_THREADS] = before


_NOTHING = Trials(np.zeros((0, 0)), np.zeros(0), np.zeros(0, dtype=np.int64))
