"""What a bandit remembers of each arm: everything, the last plays only, or the past fading away."""

from collections import deque
from dataclasses import dataclass
from itertools import chain, zip_longest

from lope.core.checks import at_least, between
from lope.core.errors import SettingError


@dataclass(frozen=True)
class Forgetting:
    """How the past counts less (Garivier and Moulines 2011, arXiv:0805.3415): not at all by default.

    window: only the last `window` plays, of all arms together, count. discount: each new play multiplies the weight
    of all older ones by it.
    """

    window: int | None = None
    discount: float = 1.0

    def __post_init__(self) -> None:
        if self.window is not None:
            at_least("window", self.window, 1)
        between("discount", self.discount, 0.0, 1.0)
        if self.discount == 0.0:
            raise SettingError("discount must be above 0: at 0 only the last play would count")
        if self.window is not None and self.discount != 1.0:
            raise SettingError("a window and a discount are two ways to forget: choose one")


class Tally:
    """Per arm: the weight of its plays, the sum and the sum of squares of their credits, and plays still waiting.

    A credit is what a rule makes of a reward (the reward itself, a coin, an importance-weighted gain).
    """

    __slots__ = ("counts", "forgets", "forgetting", "history", "learned", "squares", "sums", "waiting")

    def __init__(self, num_arms: int, forgetting: Forgetting) -> None:
        self.forgetting = forgetting
        self.forgets = forgetting != Forgetting()  # asked once a round in the hot loop
        self.counts = [0.0] * num_arms
        self.sums = [0.0] * num_arms
        self.squares = [0.0] * num_arms
        self.waiting = [0] * num_arms
        self.learned = 0
        self.history: deque[tuple[int, float]] = deque()

    def add(self, arm: int, credit: float) -> None:
        """One more play of `arm`, now known to be worth `credit`."""
        if self.forgets:
            self._make_room(arm, credit)
        self.learned += 1
        self.counts[arm] += 1.0
        self.sums[arm] += credit
        self.squares[arm] += credit * credit

    def merge(self, other: "Tally", since: "Tally") -> None:
        """Add what `other` saw after `since`, a state it went through (an empty tally for all that it saw).

        With a window the two histories are woven newest beside newest, since nobody knows which came first.
        """
        fresh = other.learned - since.learned
        if self.forgetting.window is not None:
            theirs = list(other.history)[max(0, len(other.history) - fresh) :]
            self._weave(theirs)
        else:
            faded = self.forgetting.discount**fresh
            self.counts = _plus(self.counts, other.counts, since.counts, faded)
            self.sums = _plus(self.sums, other.sums, since.sums, faded)
            self.squares = _plus(self.squares, other.squares, since.squares, faded)
        self.learned += fresh

    def _make_room(self, arm: int, credit: float) -> None:
        """Let the past fade, or the play that leaves the window go, before a new one is counted."""
        discount, window = self.forgetting.discount, self.forgetting.window
        if discount != 1.0:
            self.counts = [discount * value for value in self.counts]
            self.sums = [discount * value for value in self.sums]
            self.squares = [discount * value for value in self.squares]
        if window is not None:
            self.history.append((arm, credit))
            if len(self.history) > window:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        arm, credit = self.history.popleft()
        self.counts[arm] -= 1.0
        # Subtraction leaves rounding behind: an empty arm must be exactly empty, and no sum below zero.
        left = self.counts[arm] > 0.0
        self.sums[arm] = max(0.0, self.sums[arm] - credit) if left else 0.0
        self.squares[arm] = max(0.0, self.squares[arm] - credit * credit) if left else 0.0

    def _weave(self, theirs: list[tuple[int, float]]) -> None:
        pairs = zip_longest(reversed(self.history), reversed(theirs))
        newest_first = [play for play in chain.from_iterable(pairs) if play is not None]
        woven = Tally(len(self.counts), self.forgetting)
        for arm, credit in reversed(newest_first):
            woven.add(arm, credit)
        self.counts, self.sums, self.squares, self.history = woven.counts, woven.sums, woven.squares, woven.history


def _plus(own: list[float], other: list[float], since: list[float], faded: float) -> list[float]:
    return [mine + (theirs - faded * base) for mine, theirs, base in zip(own, other, since, strict=True)]
