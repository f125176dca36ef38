"""Two levels deeper after a draft that was accepted whole, else one less: the `heuristic` schedule of transformers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from lope.core import checks
from lope.core.budget import UNLIMITED, Budget, Round, Situation
from lope.core.cost import Calibration
from lope.core.draft import ROOT
from lope.core.errors import SettingError


@dataclass(frozen=True)
class HeuristicPolicy:
    """Starts every request at `num_assistant_tokens` levels and stays between 1 and `max_assistant_tokens`.

    Give the shape a depth it may grow to: a budget caps it and never stretches it. The state is the last round of the
    request itself, so nothing is kept of requests that have ended.
    """

    num_assistant_tokens: int = 5
    max_assistant_tokens: int = 40

    def __post_init__(self) -> None:
        checks.at_least("num_assistant_tokens", self.num_assistant_tokens, 1)
        if self.max_assistant_tokens < self.num_assistant_tokens:
            raise SettingError(
                f"max_assistant_tokens must be at least num_assistant_tokens ({self.num_assistant_tokens}), "
                f"not {self.max_assistant_tokens}"
            )

    def attach(self, calibration: Callable[[], Calibration]) -> Self:
        """Itself."""
        return self

    def choose(self, situations: Sequence[Situation]) -> list[Budget]:
        """One depth for each request, from what became of its last draft."""
        return [Budget(UNLIMITED, self._depth(situation)) for situation in situations]

    def learn(self, rounds: Sequence[Round]) -> None:
        """Nothing to keep: the next situation brings the round along."""

    def _depth(self, situation: Situation) -> int:
        if not situation.recent:
            return self.num_assistant_tokens
        last = situation.recent[-1]
        depth = min(max(last.asked.depth, 1), self.max_assistant_tokens)
        if last.prompt or last.cut or _clamped(last) or not last.parents:
            return depth  # it says nothing of how deep to draft
        drafted = _deepest(last)
        if len(last.path) < drafted:
            return max(1, depth - 1)
        # a draft that ended above its cap leaves the cap alone
        return depth if drafted < depth else min(depth + 2, self.max_assistant_tokens)


def _clamped(record: Round) -> bool:
    """True where the draft was kept shorter or smaller than this policy asked for."""
    asked, granted = record.asked, record.granted
    return granted.depth < asked.depth or (granted.nodes < asked.nodes and len(record.parents) >= granted.nodes)


def _deepest(record: Round) -> int:
    depths: list[int] = []
    for parent in record.parents:
        depths.append(1 if parent == ROOT else depths[parent] + 1)
    return max(depths)
