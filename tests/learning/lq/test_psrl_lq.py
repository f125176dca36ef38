"""When episodes end, which draws are admissible, what a restart does."""

import math

import numpy as np
import pytest

from lope.core.errors import LopeError
from lope.learning import LQ_LEARNERS, LQ_SYSTEMS
from lope.learning.lq.psrl_lq import PsrlLq
from lope.learning.lq.system import LinearSystem

STEPS = 300


def play(rule: PsrlLq, steps: int = STEPS, seed: int = 0) -> tuple[list[int], list[float]]:
    """The steps at which the gain changed, and log det of the covariance before each step, for one run."""
    system = LQ_SYSTEMS.make("public").build()
    session = rule.open(system, [np.random.default_rng(seed)])
    stream, states = np.random.default_rng([seed, 1]), np.zeros((1, 3))
    starts, log_dets = [], []
    for step in range(steps):
        log_dets.append(float(np.linalg.slogdet(session.posterior.covariance[0])[1]))
        before = session.episodes[0]
        inputs = session.act(states)
        if session.episodes[0] > before:
            starts.append(step)
        arrived = states @ system.state_map.T + inputs @ system.input_map.T + stream.standard_normal((1, 3))
        session.learn(states, inputs, arrived)
        states = arrived
    return starts, log_dets


def paper_starts(
    log_dets, *, growth: bool = True, halving: bool = True, half: float = 0.5, shortest: int = 1
) -> list[int]:
    """t > t_k + T_{k-1}, or det below half of that at the start (Ouyang et al. 2017, section 3)."""
    starts, previous = [0], 0
    for step, log_det in enumerate(log_dets):
        began = starts[-1]
        over = (growth and step > began + previous) or (halving and log_det < log_dets[began] + math.log(half))
        if step > 0 and over and step - began >= shortest:
            previous = step - began
            starts.append(step)
    return starts


@pytest.mark.parametrize(
    "settings",
    [{}, {"growth": False}, {"halving": False}, {"min_length": 5}],
    ids=["both", "halving", "growth", "long"],
)
def test_episodes_end_by_the_papers_rules(settings) -> None:
    starts, log_dets = play(PsrlLq(**settings))
    shortest = settings.get("min_length", 1)
    flags = {key: value for key, value in settings.items() if key != "min_length"}
    assert starts == paper_starts(log_dets, shortest=shortest, **flags)
    # the mutants it must notice
    assert starts != paper_starts(log_dets, half=0.9, shortest=shortest, **flags) or not flags.get("halving", True)
    assert starts != paper_starts(log_dets, growth=not flags.get("growth", True), shortest=shortest)


def test_a_restart_forgets_everything() -> None:
    starts, log_dets = play(PsrlLq(restart=100))
    assert {0, 100, 200} <= set(starts)
    assert log_dets[101] > log_dets[99] + 5
    first = [s for s in starts if s < 100]
    again = [s - 100 for s in starts if 100 <= s < 200]
    assert again[:2] == first[:2] == [0, 1]
    never, _ = play(PsrlLq())
    assert starts != never


@pytest.mark.parametrize("measure", ["norm", "radius"])
def test_draws_are_admissible(measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[float] = []
    session = PsrlLq(closed_loop=0.5, measure=measure).open(
        LQ_SYSTEMS.make("public").build(), [np.random.default_rng(0)]
    )
    size_of = session._size
    monkeypatch.setattr(session, "_size", lambda closed: sizes.append(size_of(closed)) or sizes[-1])
    for _ in range(20):
        session._draw(0)
        assert sizes[-1] < 0.5
    assert session.rejected == sum(size >= 0.5 for size in sizes) > 0


def test_norm_and_radius_are_what_they_say() -> None:
    system = LQ_SYSTEMS.make("public").build()
    shear = np.array([[0.5, 9.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.5]])
    by_norm, by_radius = (PsrlLq(measure=m).open(system, [np.random.default_rng(0)]) for m in ("norm", "radius"))
    assert by_norm._size(shear) > 9
    assert by_radius._size(shear) == pytest.approx(0.5)


def test_no_admissible_draw_is_an_error_that_says_what_helps() -> None:
    session = PsrlLq(closed_loop=1e-9, max_draws=3).open(LQ_SYSTEMS.make("public").build(), [np.random.default_rng(0)])
    with pytest.raises(LopeError, match=r"no admissible system in 3 draws.*max_draws"):
        session.act(np.zeros((1, 3)))


@pytest.mark.parametrize(
    "settings",
    [
        {"growth": False, "halving": False},
        {"measure": "trace"},
        {"min_length": 0},
        {"restart": 0},
        {"closed_loop": 0},
        {"prior_variance": 0},
        {"max_draws": 0},
    ],
)
def test_settings_out_of_range_are_refused(settings) -> None:
    with pytest.raises(LopeError):
        PsrlLq(**settings)


def test_certainty_equivalence_learns_the_gain() -> None:
    # One input and one state: K has a closed form in the Riccati root of a quadratic.
    system = LinearSystem([[0.8]], [[1.0]], [[1.0]], [[1.0]])
    root = (0.64 + math.sqrt(0.64**2 + 4)) / 2  # S = 1 + 0.64 S / (1 + S)
    session = LQ_LEARNERS.make("certainty_equivalence").open(system, [np.random.default_rng(0)])
    stream, states = np.random.default_rng(1), np.zeros((1, 1))
    for _ in range(5000):
        inputs = session.act(states)
        arrived = 0.8 * states + inputs + stream.standard_normal((1, 1))
        session.learn(states, inputs, arrived)
        states = arrived
    assert session.gains[0, 0, 0] == pytest.approx(0.8 * root / (1 + root), abs=0.05)
