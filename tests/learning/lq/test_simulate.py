"""Regret is what it says; runs do not meet; the published growth on the public system."""

import numpy as np
import pytest

from lope.core.errors import LopeError
from lope.learning import LQ_LEARNERS, LQ_SYSTEMS
from lope.learning.lq.simulate import simulate
from lope.learning.lq.system import LinearSystem, controller_of, optimal_cost

PUBLIC = LQ_SYSTEMS.make("public").build()


class Watched:
    """A learner whose states and inputs are kept."""

    def __init__(self, name: str) -> None:
        self.rule, self.steps = LQ_LEARNERS.make(name), []

    def open(self, system, streams):
        self.session = self.rule.open(system, streams)
        return self

    @property
    def episodes(self):
        return self.session.episodes

    def act(self, states):
        return self.session.act(states)

    def learn(self, states, inputs, arrived):
        self.steps.append((states, inputs, arrived))
        self.session.learn(states, inputs, arrived)


@pytest.mark.parametrize("name", list(LQ_LEARNERS))
def test_regret_is_the_sum_of_its_definition(name: str) -> None:
    plain, calm = Watched(name), Watched(name)
    at = np.array([10, 80])
    realised = simulate([(80, PUBLIC)], plain, range(3), at, realised=True)
    quiet = simulate([(80, PUBLIC)], calm, range(3), at)
    controller = controller_of(PUBLIC)
    weight = PUBLIC.input_cost + PUBLIC.input_map.T @ controller.riccati @ PUBLIC.input_map
    for run in range(3):
        costs = [x[run] @ PUBLIC.state_cost @ x[run] + u[run] @ PUBLIC.input_cost @ u[run] for x, u, _ in plain.steps]
        assert realised.regret[run] == pytest.approx([sum(costs[:t]) - t * optimal_cost(PUBLIC) for t in at])
        # Without luck: sum |u + K x|^2 in the norm of R + B'SB, less what the last state has still to cost.
        slips = [u[run] + controller.gain @ x[run] for x, u, _ in calm.steps]
        last = calm.steps[-1][2][run]
        exact = sum(s @ weight @ s for s in slips) - last @ controller.riccati @ last
        assert quiet.regret[run, -1] == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("name", list(LQ_LEARNERS))
def test_runs_do_not_meet(name: str) -> None:
    at = np.array([60])
    together = simulate([(60, PUBLIC)], LQ_LEARNERS.make(name), range(4), at)
    for seed in range(4):
        alone = simulate([(60, PUBLIC)], LQ_LEARNERS.make(name), [seed], at)
        assert alone.regret[0] == pytest.approx(together.regret[seed], rel=1e-9)


def test_regret_grows_like_the_square_root() -> None:
    # Our notes: 519 at 1,000 steps and 1502 at 10,000 (60 runs, both rules).
    trials = simulate([(10_000, PUBLIC)], LQ_LEARNERS.make("psrl_lq"), range(4), np.array([1000, 10_000]))
    early, late = trials.mean
    assert 2.2 < late / early < 4.5
    assert 300 < early < 800
    assert trials.episodes.mean() == pytest.approx(153, abs=6)


def test_a_gain_that_never_learns_has_linear_regret() -> None:
    never = LQ_LEARNERS.make("psrl_lq:halving=false,min_length=100000")
    early, late = simulate([(4000, PUBLIC)], never, range(6), np.array([400, 4000])).mean
    assert late / early > 8


def test_a_restart_helps_when_parameters_change() -> None:
    state_map, input_map = PUBLIC.state_map.T + 0.2 * np.eye(3), PUBLIC.input_map[::-1]
    changed = LinearSystem(state_map, input_map, PUBLIC.state_cost, PUBLIC.input_cost)
    phases, at = [(700, PUBLIC), (500, changed)], np.array([700, 1200])
    held, renewed = (
        simulate(phases, LQ_LEARNERS.make(f"psrl_lq{settings}"), range(3), at).regret
        for settings in ("", ":restart=700")
    )
    assert np.median(renewed[:, 1] - renewed[:, 0]) < np.median(held[:, 1] - held[:, 0])


def test_the_size_of_a_system_may_not_change() -> None:
    small = LinearSystem([[0.5]], [[1.0]], [[1.0]], [[1.0]])
    with pytest.raises(LopeError, match="number of states"):
        simulate([(5, PUBLIC), (5, small)], LQ_LEARNERS.make("optimal"), [0], np.array([10]))


def test_a_lost_run_has_infinite_regret() -> None:
    class Away:
        def open(self, system, streams):
            self.episodes = np.ones(len(streams), dtype=np.int64)
            return self

        def act(self, states):
            return 50 * states

        def learn(self, states, inputs, arrived):
            assert np.isfinite(arrived).all()

    trials = simulate([(200, LQ_SYSTEMS.make("unstable").build())], Away(), [0], np.array([10, 200]))
    assert np.isfinite(trials.regret[0, 0])
    assert trials.regret[0, 1] == np.inf
