"""A study gives the same numbers however its seeds are spread, and refuses nonsense before it starts."""

import os

import numpy as np
import pytest

from lope.core.errors import LopeError
from lope.learning.mdp.experiment import MdpExperiment
from lope.learning.mdp.random_mdp import RandomMDP
from lope.learning.mdp.riverswim import RiverSwim
from lope.learning.study import Study, one_thread_each


def test_processes_do_not_change_the_result() -> None:
    experiment = MdpExperiment(RandomMDP())
    ticks: list[int] = []
    alone = Study(experiment, ("tsde", "ucrl2"), seeds=5, steps=120, processes=1).run()
    spread = Study(experiment, ("tsde", "ucrl2"), seeds=5, steps=120, processes=2).run(ticks.append)
    assert sum(ticks) == 10
    for method, trials in alone.items():
        assert np.array_equal(trials.regret, spread[method].regret)
        assert np.array_equal(trials.optimum, spread[method].optimum)


def test_the_environment_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for before in ("3", None):
        monkeypatch.setenv("OMP_NUM_THREADS", before) if before else monkeypatch.delenv("OMP_NUM_THREADS")
        with one_thread_each():
            assert os.environ["OMP_NUM_THREADS"] == "1"
        assert os.environ.get("OMP_NUM_THREADS") == before


def test_jobs_hold_every_seed_once_and_bound_memory() -> None:
    study = Study(MdpExperiment(RiverSwim()), ("tsde",), seeds=7, steps=9_000_000, first_seed=3, processes=2)
    jobs = study.jobs
    assert [seed for _, seeds in jobs for seed in seeds] == list(range(3, 10))
    assert max(len(seeds) for _, seeds in jobs) * study.steps <= 20_000_000


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"processes": 0}, "processes must be at least 1"),
        ({"methods": ()}, "at least one method"),
        ({"methods": ("tsde", "tsde")}, "each only once"),
        ({"methods": ("tsed",)}, "did you mean 'tsde'"),
        ({"methods": ("tsde:priors=1",)}, "no setting"),
        ({"methods": ("tsde:growth=no,doubling=no",)}, "never ends"),
    ],
)
def test_nonsense_is_refused_before_anything_runs(settings, message: str) -> None:
    with pytest.raises(LopeError, match=message):
        Study(MdpExperiment(RiverSwim()), **{"methods": ("tsde",), **settings})
