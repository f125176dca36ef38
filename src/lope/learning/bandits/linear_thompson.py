"""Contextual Thompson sampling with linear rewards (Agrawal and Goyal 2013, arXiv:1209.3352), one model per arm."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lope.core.checks import above, at_least, between
from lope.core.errors import UsageError
from lope.learning import BANDITS
from lope.learning.bandits.protocol import Context
from lope.learning.bandits.session import check_state, checked_arms

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class LinearThompson:
    """reward of arm i in context x = x . theta_i + noise, theta_i ~ N(0, I / precision).

    dimension: d, the length of a context; put a 1 in it where an arm should have a level of its own. noise: 1/2 by
    default, because rewards in [0, 1] are 1/2-sub-Gaussian (Hoeffding's lemma). discount: each new play multiplies
    the weight of what all arms learned before it.
    """

    dimension: int = 1
    precision: float = 1.0
    noise: float = 0.5
    discount: float = 1.0

    def __post_init__(self) -> None:
        at_least("dimension", self.dimension, 1)
        above("precision", self.precision, 0.0)
        above("noise", self.noise, 0.0)
        above("discount", self.discount, 0.0)
        between("discount", self.discount, 0.0, 1.0)

    def open(self, num_arms: int, seed: int = 0) -> "LinearSession":
        """A bandit that knows nothing yet."""
        return LinearSession(self, num_arms, seed)


class LinearSession:
    """K Bayesian linear regressions and the contexts of the plays that wait.

    mean: [K, d] and covariance: [K, d, d] of theta's posterior. Raises UsageError for a context of the wrong length or
    with numbers that are not finite, and as BanditSession does.
    """

    def __init__(self, rule: LinearThompson, num_arms: int, seed: int) -> None:
        self.num_arms = checked_arms(num_arms)
        self._rule, self._stream = rule, np.random.default_rng(seed)
        self._information = np.zeros((num_arms, rule.dimension, rule.dimension))
        self._moment = np.zeros((num_arms, rule.dimension))
        self._prior = rule.precision * np.eye(rule.dimension)
        self._learned = 0
        self._plays: list[deque[Vector]] = [deque() for _ in range(num_arms)]
        self.covariance = np.empty_like(self._information)
        self.mean = np.empty_like(self._moment)
        self._solve(range(num_arms))

    def choose(self, context: Context = None) -> int:
        """The arm whose drawn reward is highest; no context means (1,), where the dimension is 1.

        Arms are independent, so x . theta_i ~ N(x . mean_i, x . covariance_i x) may be drawn in place of theta_i.
        """
        x = self._checked(context)
        spread = np.sqrt(self.covariance @ x @ x)
        drawn = self.mean @ x + spread * self._stream.standard_normal(self.num_arms)
        arm = int(drawn.argmax())
        self._plays[arm].append(x)
        return arm

    def learn(self, arm: int, reward: float, context: Context = None) -> None:
        """The reward of `arm` in `context`; without one, of its oldest waiting play.

        A loop whose plays end in another order than they began must hand the context in.
        """
        if not 0.0 <= reward <= 1.0:
            raise UsageError(f"a reward lies in [0, 1], not {reward}")
        if not 0 <= arm < self.num_arms:
            raise UsageError(f"arms are 0 to {self.num_arms - 1}, not {arm}")
        oldest = self._plays[arm].popleft() if self._plays[arm] else None
        x = oldest if context is None and oldest is not None else self._checked(context)
        if self._rule.discount != 1.0:
            self._information *= self._rule.discount
            self._moment *= self._rule.discount
        self._information[arm] += np.outer(x, x) / self._rule.noise**2
        self._moment[arm] += x * (reward / self._rule.noise**2)
        self._learned += 1
        self._solve((arm,) if self._rule.discount == 1.0 else range(self.num_arms))

    def withdraw(self, arm: int) -> None:
        """The newest waiting play of `arm` will bring no reward. UsageError where none is waiting."""
        if not 0 <= arm < self.num_arms or not self._plays[arm]:
            raise UsageError(f"no play of arm {arm} is waiting")
        self._plays[arm].pop()

    def save(self) -> dict[str, Any]:
        """The whole state as JSON values."""
        return {
            "bandit": BANDITS.spell(self._rule),
            "num_arms": self.num_arms,
            "information": self._information.tolist(),
            "moment": self._moment.tolist(),
            "learned": self._learned,
            "plays": [[x.tolist() for x in plays] for plays in self._plays],
            "stream": self._stream.bit_generator.state,
        }

    def restore(self, state: Mapping[str, Any], *, waiting: bool = True) -> None:
        """Become the saved bandit; waiting=False drops plays whose rewards were lost with the process that saved."""
        check_state(state, BANDITS.spell(self._rule), self.num_arms)
        self._information, self._moment = np.array(state["information"]), np.array(state["moment"])
        self._learned = state["learned"]
        self._plays = [deque(np.array(x) for x in plays if waiting) for plays in state["plays"]]
        self._stream.bit_generator.state = state["stream"]
        self._solve(range(self.num_arms))

    def merge(self, other: Self, since: Mapping[str, Any] | None = None) -> None:
        """Add what `other` learned since the state `since`; waiting plays and randomness stay each one's own."""
        check_state(other.save(), BANDITS.spell(self._rule), self.num_arms)
        base = LinearSession(self._rule, self.num_arms, seed=0)
        if since is not None:
            base.restore(since)
        fresh = other._learned - base._learned
        faded = self._rule.discount**fresh
        self._information = self._information + (other._information - faded * base._information)
        self._moment = self._moment + (other._moment - faded * base._moment)
        self._learned += fresh
        self._solve(range(self.num_arms))

    def _solve(self, arms: Iterable[int]) -> None:
        for arm in arms:
            self.covariance[arm] = np.linalg.inv(self._information[arm] + self._prior)
            self.mean[arm] = self.covariance[arm] @ self._moment[arm]

    def _checked(self, context: Context) -> Vector:
        if context is None and self._rule.dimension != 1:
            raise UsageError(f"this bandit needs a context of {self._rule.dimension} numbers")
        x = np.ones(1) if context is None else np.asarray(context, dtype=np.float64)
        if x.shape != (self._rule.dimension,) or not np.isfinite(x).all():
            raise UsageError(f"a context is {self._rule.dimension} finite numbers, not {context!r}")
        return x
