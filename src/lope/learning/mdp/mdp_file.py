"""A process of the user's own: a JSON file with a transition tensor and costs or rewards."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lope.core import json_reader
from lope.core.errors import UsageError
from lope.learning.mdp.model import MDP

MOST_BYTES = 256_000_000  # about 250 states and 50 actions in text; larger ones belong in Python


@dataclass(frozen=True)
class MdpFile:
    """{"transitions": [S][A][S], "costs": [S][A]}, or "rewards" in place of "costs" (then cost = 1 - reward)."""

    path: str
    cost_noise: float = 0.0

    def draw(self, seed: int) -> MDP:
        """The process in the file; `seed` does not matter. Raises UsageError that says what is wrong with the file."""
        file = Path(self.path)
        if not file.is_file():
            raise UsageError(f"there is no file {self.path}")
        if file.stat().st_size > MOST_BYTES:
            raise UsageError(
                f"{self.path} is larger than {MOST_BYTES // 1_000_000} MB; build lope.learning's MDP in Python"
            )
        try:
            document = json_reader.parsed(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UsageError(f"{self.path} is not JSON: {error}") from None
        keys = set(document) if isinstance(document, dict) else set()
        if keys not in ({"transitions", "costs"}, {"transitions", "rewards"}):
            raise UsageError(f'{self.path} must hold "transitions" and either "costs" or "rewards"')
        mdp = MDP(document["transitions"], document.get("costs", document.get("rewards")), self.cost_noise)
        return mdp if "costs" in keys else MDP(mdp.transitions, np.asarray(1 - mdp.costs), self.cost_noise)
