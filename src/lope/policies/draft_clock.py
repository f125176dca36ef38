"""Is the drafter as fast as it was when it was measured?"""

from collections import deque
from statistics import median


class DraftClock:
    """How many times its calibrated time the drafter takes, each time seen beside the target's in the same round.

    A machine that is busier than it was slows both, and changes nothing. The median of the last few rounds counts, so
    that a hiccup does not switch a drafter off; it starts out believing the calibration.
    """

    def __init__(self) -> None:
        self._ratios: deque[float] = deque([1.0, 1.0], maxlen=5)
        self.slowdown = 1.0

    def learn(self, ratio: float, *, bad_news: bool, good_news: bool) -> None:
        """One round's ratio, if it may count: a drafter that had text to catch up with is slower once."""
        if bad_news if ratio > self.slowdown else good_news:
            self._ratios.append(ratio)
            self.slowdown = median(self._ratios)
