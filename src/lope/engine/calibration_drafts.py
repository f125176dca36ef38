"""What a draft costs by its depth, and a round beside its pass and its draft: from rounds of the real loop."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from lope.core.budget import UNLIMITED, Budget, Round, Situation
from lope.core.draft import ROOT
from lope.core.errors import DraftError
from lope.core.prompt import Prompt
from lope.engine.calibration_passes import Clock, spread_tokens
from lope.engine.calibration_plan import CalibrationPlan
from lope.engine.calibration_record import DraftCosts, Measured
from lope.engine.settings import RequestSettings

if TYPE_CHECKING:
    from lope.engine.engine import Engine

_DEPTHS = (UNLIMITED, 1, 2, 4, 8)
_REPEATED, _REPEATS = 16, 4  # a prompt that repeats itself, so that a drafter that copies finds something


class Sweep:
    """A policy that asks for all there is, then for nothing for so many rounds, then for every depth in turn.

    The prompt's round is the first: a drafter that copies surely finds something in a prompt that repeats itself.
    """

    def __init__(self, plain: int) -> None:
        self._plain = plain
        self.records: list[Round] = []

    def choose(self, situations: Sequence[Situation]) -> list[Budget]:
        """The next depth."""
        turn = len(self.records) - 1 - self._plain
        nothing = Budget(0, 0) if self.records else Budget(UNLIMITED, UNLIMITED)
        budget = nothing if turn < 0 else Budget(UNLIMITED, _DEPTHS[turn % len(_DEPTHS)])
        return [budget] * len(situations)

    def learn(self, rounds: Sequence[Round]) -> None:
        """Keep them."""
        self.records += rounds

    def plain(self) -> list[Round]:
        """Rounds that were to draft nothing."""
        return self.records[1 : 1 + self._plain]

    def drafting(self) -> list[Round]:
        """Rounds that were to draft, later ones first."""
        return [*reversed(self.records[1 + self._plain :]), *self.records[:1]]


@dataclass(frozen=True, eq=False)
class DraftTimer:
    """Times an engine's drafter and its rounds. clock: seconds. advance: called after each round."""

    engine: "Engine"
    plan: CalibrationPlan
    clock: Clock = time.perf_counter
    advance: Callable[[], None] = lambda: None

    def run(self) -> tuple[float, DraftCosts]:
        """(seconds of a plain round beside its pass, costs of drafting)."""
        sweep = Sweep(self.plan.plain)
        engine = self.engine.with_policy(sweep)
        backend = engine.model.backend
        repeats = max(1, min(_REPEATS, backend.context // (4 * _REPEATED)))
        prompt = spread_tokens(min(_REPEATED, backend.context // 4), backend.vocab_size) * repeats
        settings = RequestSettings(max_new_tokens=UNLIMITED, ignore_stop=True, seed=0)
        request = engine.open(Prompt(prompt), settings)
        stop = self.clock() + self.plan.draft_seconds
        count = 1 + self.plan.plain + self.plan.drafts
        while not request.done and len(sweep.records) < count:
            if self.clock() > stop and len(sweep.drafting()) > 2:
                break
            engine.loop.round([request])
            if request.draft_error is not None:
                raise DraftError(request.draft_error)
            self.advance()
        return self._overhead(sweep.plain()), _costs(sweep.drafting())

    def _overhead(self, rounds: Sequence[Round]) -> float:
        times = [record.times for record in rounds]
        if not times:
            return 0.0
        if self.engine.model.backend.device.startswith("cuda"):
            # a pass ends when its answer is read, which is while it is verified: what is left is what no pass waits for
            return median(each.propose + each.commit for each in times)
        return median(each.propose + each.verify + each.commit for each in times)


def _costs(rounds: Sequence[Round]) -> DraftCosts:
    """By depth. In the two earliest rounds the drafter had text to read: they tell how long it takes at need only."""
    samples: dict[int, list[float]] = {}
    nodes: dict[int, int] = {}
    for index, record in enumerate(rounds):
        depth = _depth(record.parents)
        if depth:
            nodes[depth] = max(nodes.get(depth, 0), len(record.parents))
            if depth not in samples or index < len(rounds) - 2:
                samples.setdefault(depth, []).append(record.times.propose)
    return DraftCosts(Measured.of(samples), tuple(nodes[depth] for depth in sorted(nodes)))


def _depth(parents: Sequence[int]) -> int:
    depths: list[int] = []
    for parent in parents:
        depths.append(1 if parent == ROOT else depths[parent] + 1)
    return max(depths, default=0)
