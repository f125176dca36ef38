"""A bandit at work: owns what was learned, the plays that wait, and the randomness; its rule only decides."""

from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np

from lope.core.errors import UsageError
from lope.learning import BANDITS
from lope.learning.bandits.protocol import Context
from lope.learning.bandits.tally import Forgetting, Tally

FORCED = 1.0  # the probability of an arm that somebody else chose: its reward counts once


class Rule(Protocol):
    """How one bandit decides: frozen settings, no state."""

    def forgetting(self) -> Forgetting:
        """How the past fades."""
        ...

    def pick(self, tally: Tally, stream: np.random.Generator) -> tuple[int, float]:
        """The arm to play and the probability with which this law plays it (1 where the rule does not need it)."""
        ...

    def credit(self, reward: float, probability: float, stream: np.random.Generator) -> float:
        """What the tally is to remember of a reward."""
        ...


class BanditSession:
    """K arms under one rule. An arm learned without having been chosen (a warm start) counts as a forced play.

    Raises UsageError for no arms, an unknown arm, a reward outside [0, 1] or NaN.
    """

    __slots__ = ("_plays", "_rule", "_stream", "num_arms", "tally")

    def __init__(self, rule: Rule, num_arms: int, seed: int) -> None:
        self.num_arms = checked_arms(num_arms)
        self.tally = Tally(num_arms, rule.forgetting())
        self._rule = rule
        self._stream = np.random.default_rng(seed)
        self._plays: list[deque[float]] = [deque() for _ in range(num_arms)]  # probabilities of waiting plays

    def choose(self, context: Context = None) -> int:
        """The arm to play now. These rules take no context and choose the same with one."""
        arm, probability = self._rule.pick(self.tally, self._stream)
        self._plays[arm].append(probability)
        self.tally.waiting[arm] += 1
        return arm

    def learn(self, arm: int, reward: float) -> None:
        """The reward, in [0, 1], of the oldest waiting play of `arm`."""
        if not 0.0 <= reward <= 1.0:
            raise UsageError(f"a reward lies in [0, 1], not {reward}")
        if not 0 <= arm < self.num_arms:
            raise UsageError(f"arms are 0 to {self.num_arms - 1}, not {arm}")
        plays, probability = self._plays[arm], FORCED
        if plays:
            probability = plays.popleft()
            self.tally.waiting[arm] -= 1
        self.tally.add(arm, self._rule.credit(float(reward), probability, self._stream))

    def withdraw(self, arm: int) -> None:
        """The newest waiting play of `arm` will bring no reward. UsageError where none is waiting."""
        if not 0 <= arm < self.num_arms or not self._plays[arm]:
            raise UsageError(f"no play of arm {arm} is waiting")
        self._plays[arm].pop()
        self.tally.waiting[arm] -= 1

    def save(self) -> dict[str, Any]:
        """The whole state as JSON values."""
        tally = self.tally
        return {
            "bandit": BANDITS.spell(self._rule),
            "num_arms": self.num_arms,
            "counts": list(tally.counts),
            "sums": list(tally.sums),
            "squares": list(tally.squares),
            "learned": tally.learned,
            "history": [list(play) for play in tally.history],
            "plays": [list(plays) for plays in self._plays],
            "stream": self._stream.bit_generator.state,
        }

    def restore(self, state: Mapping[str, Any], *, waiting: bool = True) -> None:
        """Become the saved bandit; waiting=False drops plays whose rewards were lost with the process that saved."""
        check_state(state, BANDITS.spell(self._rule), self.num_arms)
        self.tally = self._tally_of(state)
        self._plays = [deque(plays if waiting else ()) for plays in state["plays"]]
        self.tally.waiting = [len(plays) for plays in self._plays]
        self._stream.bit_generator.state = state["stream"]

    def merge(self, other: Self, since: Mapping[str, Any] | None = None) -> None:
        """Add what `other` learned since the state `since`; waiting plays and randomness stay each one's own."""
        check_state(other.save(), BANDITS.spell(self._rule), self.num_arms)
        base = Tally(self.num_arms, self.tally.forgetting)
        if since is not None:
            check_state(since, BANDITS.spell(self._rule), self.num_arms)
            base = self._tally_of(since)
        self.tally.merge(other.tally, base)

    def _tally_of(self, state: Mapping[str, Any]) -> Tally:
        tally = Tally(self.num_arms, self._rule.forgetting())
        tally.counts, tally.sums = list(state["counts"]), list(state["sums"])
        tally.squares, tally.learned = list(state["squares"]), state["learned"]
        tally.history = deque((arm, credit) for arm, credit in state["history"])
        return tally


def checked_arms(num_arms: int) -> int:
    """The number of arms, if there is at least one."""
    if num_arms < 1:
        raise UsageError(f"a bandit needs at least one arm, not {num_arms}")
    return num_arms


def check_state(state: Mapping[str, Any], bandit: str, num_arms: int) -> None:
    """Refuse the state of another bandit, or one with parts missing."""
    found = (state.get("bandit"), state.get("num_arms"))
    if found != (bandit, num_arms):
        raise UsageError(f"this is the state of {found[0]} with {found[1]} arms, not of {bandit} with {num_arms}")
    missing = {"learned", "plays", "stream"} - set(state)
    if missing:
        raise UsageError(f"the state of {bandit} lacks {', '.join(sorted(missing))}")
