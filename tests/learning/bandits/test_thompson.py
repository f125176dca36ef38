"""Posteriors against numerical integration, and choices against the chance of being best under them."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy import stats

from lope.learning import BANDITS
from lope.learning.bandits.beta_thompson import BetaThompson
from lope.learning.bandits.gaussian_thompson import GaussianThompson
from lope.learning.bandits.session import BanditSession

DRAWS = 20_000
SEEN = [(0, 1.0), (0, 0.0), (0, 1.0), (1, 1.0), (2, 0.0), (2, 0.0), (2, 1.0), (2, 0.0)]


def frequencies(bandit) -> np.ndarray:
    """How often each arm is chosen with nothing more learned."""
    counts = np.zeros(3)
    for _ in range(DRAWS):
        arm = bandit.choose()
        counts[arm] += 1
        bandit.withdraw(arm)
    return counts / DRAWS


def chance_of_best(laws) -> np.ndarray:
    """P(arm i has the largest draw) = integral of density_i times the others' distribution functions."""
    grid = np.linspace(-4, 5, 90_001)
    density = [law.pdf(grid) for law in laws]
    below = [law.cdf(grid) for law in laws]
    best = [density[i] * np.prod([below[j] for j in range(3) if j != i], axis=0) for i in range(3)]
    return np.array([np.trapezoid(values, grid) for values in best])


def check_beta(rule) -> None:
    bandit = BanditSession(rule, 3, seed=2)
    for arm, reward in SEEN:
        bandit.learn(arm, reward)
    # Agrawal and Goyal 2012, algorithm 1: Beta(1 + successes, 1 + failures)
    exact = chance_of_best([stats.beta(3, 2), stats.beta(2, 1), stats.beta(2, 4)])
    assert frequencies(bandit) == pytest.approx(exact, abs=0.015)


def test_beta_thompson_plays_an_arm_as_often_as_it_may_be_best() -> None:
    check_beta(BetaThompson())


@dataclass(frozen=True)
class Swapped(BetaThompson):
    def pick(self, tally, stream):
        draws = [stream.beta(1 + n - s, 1 + s) for n, s in zip(tally.counts, tally.sums, strict=True)]
        return int(np.argmax(draws)), 1.0


@dataclass(frozen=True)
class Greedy(BetaThompson):
    def pick(self, tally, stream):
        means = [(1 + s) / (2 + n) for n, s in zip(tally.counts, tally.sums, strict=True)]
        return int(np.argmax(means)), 1.0


@dataclass(frozen=True)
class Doubled(BetaThompson):
    def credit(self, reward, probability, stream):
        return 2 * reward if reward < 1 else reward - 0.5


@pytest.mark.parametrize("mutant", [Swapped(), Greedy(), Doubled(), BetaThompson(success=3.0)])
def test_a_wrong_beta_posterior_is_noticed(mutant: BetaThompson) -> None:
    with pytest.raises(AssertionError):
        check_beta(mutant)


def test_fractional_rewards_are_coins_with_their_chance() -> None:
    bandit = BetaThompson().open(1, seed=0)
    for _ in range(4000):
        bandit.learn(0, 0.3)
    assert bandit.tally.sums[0] == bandit.tally.squares[0]  # every credit was 0 or 1
    assert bandit.tally.sums[0] / 4000 == pytest.approx(0.3, abs=0.03)
    exact = BetaThompson(fractional=True).open(1, seed=0)
    for _ in range(10):
        exact.learn(0, 0.3)
    assert exact.tally.sums[0] == pytest.approx(3.0)


def test_discounted_thompson_fades_successes_and_failures() -> None:
    # Raj and Kalyani 2017: S <- g S + r, F <- g F + (1 - r) for the played arm, S <- g S, F <- g F for the others
    rule, gamma = BetaThompson(discount=0.8), 0.8
    bandit = rule.open(3)
    success, failure = np.zeros(3), np.zeros(3)
    for arm, reward in SEEN:
        bandit.learn(arm, reward)
        success, failure = gamma * success, gamma * failure
        success[arm] += reward
        failure[arm] += 1 - reward
    for arm in range(3):
        assert rule.posterior(bandit.tally, arm) == pytest.approx((1 + success[arm], 1 + failure[arm]))


@cache
def posterior_by_grid(rewards, rule: GaussianThompson) -> tuple[float, float]:
    """Mean and standard deviation of mu, by integrating likelihood times prior over (mu, variance)."""
    mu = np.linspace(-3, 4, 1401)[:, None]
    log_variance = np.linspace(np.log(1e-4), np.log(50), 500)[None, :]
    variance = np.exp(log_variance)
    log_weight = stats.invgamma(rule.shape, scale=rule.scale).logpdf(variance) + log_variance  # d variance
    log_weight = log_weight + stats.norm(rule.mean, np.sqrt(variance / rule.strength)).logpdf(mu)
    for reward in rewards:
        log_weight = log_weight + stats.norm(mu, np.sqrt(variance)).logpdf(reward)
    weight = np.exp(log_weight - log_weight.max()).sum(axis=1)
    weight /= weight.sum()
    mean = float((weight * mu[:, 0]).sum())
    return mean, float(np.sqrt((weight * (mu[:, 0] - mean) ** 2).sum()))


def check_gaussian(rule, reference: GaussianThompson) -> None:
    rewards = (0.9, 0.4, 0.55, 0.7, 0.2)
    bandit = BanditSession(rule, 1, seed=0)
    for reward in rewards:
        bandit.learn(0, reward)
    freedom, centre, width = rule.posterior(bandit.tally, 0)
    mean, deviation = posterior_by_grid(rewards, reference)
    assert centre == pytest.approx(mean, abs=1e-3)
    assert width * np.sqrt(freedom / (freedom - 2)) == pytest.approx(deviation, rel=5e-3)


@pytest.mark.parametrize("rule", [GaussianThompson(), GaussianThompson(mean=0.2, strength=3, shape=2, scale=0.5)])
def test_the_gaussian_posterior_is_the_integral(rule: GaussianThompson) -> None:
    check_gaussian(rule, rule)


@dataclass(frozen=True)
class NoSpreadOfPrior(GaussianThompson):
    def posterior(self, tally, arm):
        freedom, centre, width = super().posterior(tally, arm)
        return freedom, centre, width / np.sqrt(2)


@dataclass(frozen=True)
class HalfCount(GaussianThompson):
    def posterior(self, tally, arm):
        freedom, centre, width = super().posterior(tally, arm)
        return freedom - tally.counts[arm] / 2, centre, width


@dataclass(frozen=True)
class NoPriorMean(GaussianThompson):
    def posterior(self, tally, arm):
        freedom, _, width = super().posterior(tally, arm)
        return freedom, tally.sums[arm] / tally.counts[arm], width


@pytest.mark.parametrize("mutant", [NoSpreadOfPrior(), HalfCount(), NoPriorMean()])
def test_a_wrong_gaussian_posterior_is_noticed(mutant: GaussianThompson) -> None:
    with pytest.raises(AssertionError):
        check_gaussian(mutant, GaussianThompson())


def test_gaussian_thompson_plays_an_arm_as_often_as_it_may_be_best() -> None:
    rule = GaussianThompson()
    bandit = rule.open(3, seed=4)
    for arm, reward in SEEN:
        bandit.learn(arm, reward)
    laws = [stats.t(f, c, w) for f, c, w in (rule.posterior(bandit.tally, arm) for arm in range(3))]
    assert frequencies(bandit) == pytest.approx(chance_of_best(laws), abs=0.015)


def check_linear(bandit, precision: float, noise: float) -> None:
    """Arm by arm, the batch formula: covariance (precision I + X'X / noise^2)^-1, mean covariance X'r / noise^2."""
    stream = np.random.default_rng(3)
    seen: dict[int, list[tuple[np.ndarray, float]]] = {0: [], 1: []}
    for _ in range(200):
        context = stream.standard_normal(4)
        arm = bandit.choose(context)
        seen[arm].append((context, float(stream.random())))
        bandit.learn(arm, seen[arm][-1][1])
    for arm, plays in seen.items():
        contexts, rewards = np.array([x for x, _ in plays]), np.array([r for _, r in plays])
        covariance = np.linalg.inv(precision * np.eye(4) + contexts.T @ contexts / noise**2)
        assert bandit.covariance[arm] == pytest.approx(covariance, abs=1e-9)
        assert bandit.mean[arm] == pytest.approx(covariance @ contexts.T @ rewards / noise**2, abs=1e-9)


def test_the_linear_posterior_is_batch_regression() -> None:
    check_linear(BANDITS.make("linear_thompson:dimension=4").open(2), 1.0, 0.5)
    check_linear(BANDITS.make("linear_thompson:dimension=4,precision=3,noise=0.2").open(2), 3.0, 0.2)


def test_a_wrong_linear_posterior_is_noticed() -> None:
    for settings in ("noise=0.4", "precision=2", "discount=0.99"):
        with pytest.raises(AssertionError):
            check_linear(BANDITS.make(f"linear_thompson:dimension=4,{settings}").open(2), 1.0, 0.5)


def test_linear_thompson_draws_from_the_posterior_of_the_reward() -> None:
    bandit = BANDITS.make("linear_thompson:dimension=2").open(3, seed=1)
    for arm, reward in SEEN:
        bandit.learn(arm, reward, [1.0, 0.5 * arm])
    context = np.array([1.0, -1.0])
    laws = [
        stats.norm(m @ context, np.sqrt(context @ c @ context))
        for m, c in zip(bandit.mean, bandit.covariance, strict=True)
    ]
    counts = np.zeros(3)
    for _ in range(DRAWS):
        arm = bandit.choose(context)
        counts[arm] += 1
        bandit.withdraw(arm)
    assert counts / DRAWS == pytest.approx(chance_of_best(laws), abs=0.015)


def test_contexts_are_checked() -> None:
    bandit = BANDITS.make("linear_thompson:dimension=2").open(2)
    for context in (None, [1.0], [1.0, float("nan")], [1.0, float("inf")], [[1.0, 2.0]]):
        with pytest.raises(ValueError, match="context"):
            bandit.choose(context)


def test_the_right_arm_depends_on_the_context() -> None:
    bandit = BANDITS.make("linear_thompson:dimension=2").open(2, seed=0)
    stream = np.random.default_rng(0)
    right = 0
    for step in range(600):
        side = int(stream.integers(2))
        arm = bandit.choose([1.0, float(side)])
        right += (arm == side) * (step >= 300)
        bandit.learn(arm, float(stream.random() < (0.8 if arm == side else 0.2)))
    assert right > 270
