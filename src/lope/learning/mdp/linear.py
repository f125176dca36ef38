"""Posterior sampling with linearly growing episodes: TSDE without doubling, which is what its authors' code runs."""

from dataclasses import dataclass

from lope.learning.mdp.experience import Experience, Plan, Streams
from lope.learning.mdp.tsde import Tsde


@dataclass(frozen=True)
class Linear:
    """Episode k lasts k steps; in mgagrani/TSDE an aliased array (`rho_base = rho`) keeps doubling from ever firing."""

    prior: float = 0.1

    def plan(self, experience: Experience, streams: Streams) -> Plan:
        """As TSDE plans, with no limit on counts."""
        return Tsde(prior=self.prior, doubling=False).plan(experience, streams)
