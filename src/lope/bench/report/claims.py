"""What may be said of a system: its interval read against the noise of the run, which is plain decoding twice."""

from dataclasses import dataclass

from lope.bench.bootstrap import Interval


@dataclass(frozen=True)
class Claim:
    """A system's speed-up beside the interval of two runs of the same thing."""

    speedup: Interval
    noise: Interval

    @property
    def verdict(self) -> str:
        """`faster` or `slower` where the intervals do not meet, else `alike`."""
        if self.speedup.low > self.noise.high:
            return "faster"
        if self.speedup.high < self.noise.low:
            return "slower"
        return "alike"

    @property
    def words(self) -> str:
        """The verdict for a reader."""
        return {
            "faster": "Faster: its interval lies above the noise of this run.",
            "slower": "Slower: its interval lies below the noise of this run.",
            "alike": "No difference that this run can show: its interval meets the noise.",
        }[self.verdict]
