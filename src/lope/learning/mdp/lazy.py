"""Lazy PSRL (Abbasi-Yadkori and Szepesvari 2015, arXiv:1406.3926): episodes end only when a count doubles."""

from dataclasses import dataclass

from lope.learning.mdp.experience import Experience, Plan, Streams
from lope.learning.mdp.tsde import Tsde


@dataclass(frozen=True)
class Lazy:
    """TSDE without the growth rule: a bad draw that keeps the chain in well-known states is never thrown away."""

    prior: float = 0.1

    def plan(self, experience: Experience, streams: Streams) -> Plan:
        """As TSDE plans, with no limit on the episode's length."""
        return Tsde(prior=self.prior, growth=False).plan(experience, streams)
