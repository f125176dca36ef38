"""The recursive posterior is batch Bayesian regression, also after states of a billion."""

import numpy as np
import pytest

from lope.learning import LQ_LEARNERS, LQ_SYSTEMS
from lope.learning.lq.learner import prior
from lope.learning.lq.posterior import Posterior

MEAN, VARIANCE = 0.5, 0.2


def observations(steps: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """z [T, N, 6] and x' [T, N, 3] of the public system under random inputs."""
    system, stream = LQ_SYSTEMS.make("public").build(), np.random.default_rng(0)
    z = scale * stream.standard_normal((steps, 2, 6))
    theta = np.vstack([system.state_map.T, system.input_map.T])
    return z, z @ theta + stream.standard_normal((steps, 2, 3))


def check_batch(posterior: Posterior, z: np.ndarray, arrived: np.ndarray, noise: float = 1.0, tolerance=1e-9) -> None:
    for seen, came in zip(z, arrived, strict=True):
        posterior.update(seen, came)
    for run in range(z.shape[1]):
        precision = np.eye(6) / VARIANCE + z[:, run].T @ z[:, run] / noise**2
        covariance = np.linalg.inv(precision)
        moment = np.full((6, 3), MEAN) / VARIANCE + z[:, run].T @ arrived[:, run] / noise**2
        assert posterior.covariance[run] == pytest.approx(covariance, abs=tolerance)
        assert posterior.mean[run] == pytest.approx(covariance @ moment, abs=tolerance)
        assert posterior.log_det[run] == pytest.approx(np.linalg.slogdet(covariance)[1], abs=1e-8)


@pytest.mark.parametrize("noise", [1.0, 0.3])
def test_it_is_batch_regression(noise: float) -> None:
    posterior = prior(LQ_SYSTEMS.make("public").build(), 2, MEAN, VARIANCE)
    posterior._variance = noise**2
    check_batch(posterior, *observations(5000), noise)


def test_one_run_of_ten_thousand_steps_of_the_learner() -> None:
    system = LQ_SYSTEMS.make("public").build()
    session = LQ_LEARNERS.make("certainty_equivalence").open(system, [np.random.default_rng(0)])
    stream, states, seen = np.random.default_rng(1), np.zeros((1, 3)), []
    for _ in range(10_000):
        inputs = session.act(states)
        arrived = states @ system.state_map.T + inputs @ system.input_map.T + stream.standard_normal((1, 3))
        session.learn(states, inputs, arrived)
        seen.append((np.hstack([states, inputs]), arrived))
        states = arrived
    z, arrived = np.stack([s[0] for s in seen])[:, 0], np.stack([s[1] for s in seen])[:, 0]
    covariance = np.linalg.inv(np.eye(6) / VARIANCE + z.T @ z)
    mean = covariance @ (np.full((6, 3), MEAN) / VARIANCE + z.T @ arrived)
    assert session.posterior.covariance[0] == pytest.approx(covariance, abs=1e-9)
    assert session.posterior.mean[0] == pytest.approx(mean, abs=1e-9)


class SquareOfTotal(Posterior):
    def update(self, z, arrived):
        self._variance, kept = self._variance * 1.1, self._variance
        super().update(z, arrived)
        self._variance = kept


class OtherColumn(Posterior):
    def update(self, z, arrived):
        super().update(z, arrived[:, ::-1])


class MeanLate(Posterior):
    """Updates the covariance before the mean, whose gain is then that of the next step."""

    def update(self, z, arrived):
        mean = self.mean
        super().update(z, arrived)
        gain = (self.covariance @ z[..., None])[..., 0] / (1 + (z * (self.covariance @ z[..., None])[..., 0]).sum(1))[
            :, None
        ]
        self.mean = mean + gain[:, :, None] * (arrived - (z[:, None] @ mean)[:, 0])[:, None, :]


class RootWithoutShare(Posterior):
    """Potter's update with the plain 1 / total: right for the mean, wrong for the root."""

    def update(self, z, arrived):
        root, turned = self.root, (z[:, None, :] @ self.root)[:, 0]
        super().update(z, arrived)
        total = 1 + (turned * turned).sum(axis=1)
        spread = (root @ turned[..., None])[..., 0]
        self.root = root - (spread / total[:, None])[:, :, None] * turned[:, None, :]


@pytest.mark.parametrize("mutant", [SquareOfTotal, OtherColumn, MeanLate, RootWithoutShare])
def test_a_wrong_update_is_noticed(mutant: type[Posterior]) -> None:
    start = prior(LQ_SYSTEMS.make("public").build(), 2, MEAN, VARIANCE)
    with pytest.raises(AssertionError):
        check_batch(mutant(start.mean, start.root, 1.0), *observations(50))


def test_states_of_a_billion_leave_a_covariance() -> None:
    posterior = prior(LQ_SYSTEMS.make("public").build(), 2, MEAN, VARIANCE)
    z, arrived = observations(40, scale=1e9)
    for seen, came in zip(z, arrived, strict=True):
        posterior.update(seen, came)
    assert (np.linalg.eigvalsh(posterior.covariance) > -1e-30).all()
    assert np.isfinite(posterior.log_det).all()
    theta = np.vstack([LQ_SYSTEMS.make("public").build().state_map.T, LQ_SYSTEMS.make("public").build().input_map.T])
    assert posterior.mean[0] == pytest.approx(theta, abs=1e-6)
