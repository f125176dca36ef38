"""Let N controllers act on N copies of a system, and count what their ignorance costs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lope.core.errors import UsageError
from lope.learning.lq.learner import LqLearner
from lope.learning.lq.system import LinearSystem, Matrix, controller_of
from lope.learning.trials import Trials

LOST = 1e100  # its square is still a number, and no control brings it back within float64
ENVIRONMENT, LEARNER = 76, 77  # the two streams of a seed: all methods meet the same noise


def simulate(
    phases: Sequence[tuple[int, LinearSystem]],
    learner: LqLearner,
    seeds: Sequence[int],
    at: NDArray[np.int64],
    *,
    realised: bool = False,
) -> Trials:
    """Run N controllers from x = 0 through `phases`, (steps, system) each: a system that changes its parameters.

    at: checkpoints [C], increasing, the last one the sum of all steps. The learner is opened on the first system and
    told of no change. A run whose state passes 1e100 is lost: its regret is infinite from there on.
    realised: True gives sum (cost - J*) as the paper defines it. False (the default) takes from it the luck of the
    noise, x'Sx - E[x'Sx], a martingale of mean zero: the same mean over seeds, with less spread.
    """
    first = phases[0][1]
    if any((s.num_states, s.num_inputs) != (first.num_states, first.num_inputs) for _, s in phases):
        raise UsageError("a system that changes must keep its number of states and inputs")
    worlds = [np.random.default_rng([seed, ENVIRONMENT]) for seed in seeds]
    session = learner.open(first, [np.random.default_rng([seed, LEARNER]) for seed in seeds])
    states = np.zeros((len(seeds), first.num_states))
    lost = np.zeros(len(seeds), dtype=bool)
    losses, optimum = [], np.empty(0)
    for steps, system in phases:
        noise = system.noise * np.stack([world.standard_normal((steps, system.num_states)) for world in worlds])
        meter = _Meter(system, realised)
        optimum = np.full(len(seeds), meter.optimum)
        for step in range(steps):
            inputs = session.act(states)
            arrived = states @ system.state_map.T + inputs @ system.input_map.T + noise[:, step]
            losses.append(np.where(lost, np.inf, meter.loss(states, inputs, arrived)))
            session.learn(states, inputs, arrived)
            lost |= abs(arrived).max(axis=1) > LOST
            states = np.where(lost[:, None], 0.0, arrived)
    return Trials(np.stack(losses, axis=1).cumsum(axis=1)[:, at - 1], optimum, session.episodes)


class _Meter:
    """What one step costs above J*, [N]."""

    def __init__(self, system: LinearSystem, realised: bool) -> None:
        self._system, self._realised = system, realised
        self._riccati = controller_of(system).riccati
        self.optimum = float(system.noise**2 * np.trace(self._riccati))

    def loss(self, states: Matrix, inputs: Matrix, arrived: Matrix) -> Matrix:
        system = self._system
        paid = _form(states, system.state_cost) + _form(inputs, system.input_cost) - self.optimum
        if self._realised:
            return paid
        expected = states @ system.state_map.T + inputs @ system.input_map.T
        luck = _form(arrived, self._riccati) - _form(expected, self._riccati) - self.optimum
        return paid - luck


def _form(vectors: Matrix, weight: Matrix) -> Matrix:
    """v.Wv for every row: [N]."""
    form: Matrix = (vectors @ weight * vectors).sum(axis=1)
    return form
