"""The budget with the most expected tokens per second by measured costs and acceptance; none where plain is faster."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lope.core import checks
from lope.core.budget import Budget, Round, Situation
from lope.core.cost import Calibration
from lope.core.draft import ROOT
from lope.core.protocols import Policy
from lope.policies.acceptance import Acceptance
from lope.policies.draft_clock import DraftClock
from lope.policies.loss_ledger import LossLedger
from lope.policies.round_costs import RoundCosts, deepest

_NOTHING = Budget(0, 0)
_LONGEST_WAIT = 32
_HOPELESS_WAIT = 512
_PROBE_SHARE = 0.01  # of plain time that may go into tries, after the first few
_FIRST_TRIES = 3
_LOOK_BACK = 4
_CATCHES_UP = 8
_UNKNOWN, _REFUSED, _PARTLY, _WHOLE = range(4)


@dataclass(frozen=True)
class CalibratedPolicy:
    """Maximises expected tokens / (drafting + pass + overhead) for the whole round, by the machine's calibration.

    allowance:   share of plain decoding's time that may be lost to drafts that fail.
    credit:      plain passes that may be lost before anything was gained; reserve: and at most ever in a row.
    prior:       chance that a first drafted token is accepted, before any was tried.
    memory:      about how many drafts acceptance is learnt from.
    probe_every: rounds without drafts before one node is tried again; doubles with each failure.
    max_depth:   deepest draft.
    """

    allowance: float = 0.02
    credit: float = 1.0
    reserve: float = 2.5
    prior: float = 0.3
    memory: float = 40.0
    probe_every: int = 8
    max_depth: int = 32

    def __post_init__(self) -> None:
        checks.between("allowance", self.allowance, 0.0, 1.0)
        checks.between("credit", self.credit, 0.0, 1000.0)
        checks.between("reserve", self.reserve, 0.0, 1000.0)
        checks.between("prior", self.prior, 0.0, 1.0)
        checks.at_least("memory", self.memory, 1.0)
        checks.at_least("probe_every", self.probe_every, 1)
        checks.at_least("max_depth", self.max_depth, 0)

    def attach(self, calibration: Callable[[], Calibration]) -> Policy:
        """A policy of its own for each engine: it learns."""
        return CalibratedChoice(self, calibration())


class CalibratedChoice:
    """What one engine has learnt. Rounds that ran a prompt are plain; rounds that were cut or clamped teach nothing."""

    def __init__(self, settings: CalibratedPolicy, calibration: Calibration) -> None:
        self._settings = settings
        self._calibration = calibration
        self._depth = min(settings.max_depth, calibration.deepest)
        self._nodes = calibration.nodes
        self._acceptance = Acceptance(self._depth, settings.prior, settings.memory)
        self._ledger = LossLedger(settings.allowance, settings.credit, settings.reserve)
        self._clock = DraftClock()
        self._costs = RoundCosts(calibration, 1, 0, self._depth)
        self._moods: list[tuple[int, int]] = []
        self._catching_up = False
        self._probing = False
        self._wait = settings.probe_every
        self._since = _HOPELESS_WAIT  # the first try need not wait
        self._tried = 0

    def choose(self, situations: Sequence[Situation]) -> list[Budget]:
        """The best budgets that the ledger affords, for all requests together."""
        if not situations:
            return []
        length = sum(situation.length for situation in situations) // len(situations)
        if not self._costs.fits(len(situations), length):
            self._costs = RoundCosts(self._calibration, len(situations), length, self._depth)
        if any(not situation.recent for situation in situations):
            self._begin(len(situations))
        self._moods = [_mood(situation.recent) for situation in situations]
        limits = [min(self._depth, situation.room) if situation.recent else 0 for situation in situations]
        depths = self._fastest(limits)
        self._probing = not any(depths) and any(limits) and self._may_probe()
        if self._probing:
            depths[next(i for i, limit in enumerate(limits) if limit > 0)] = 1
        drafting = [s for s, depth in zip(situations, depths, strict=True) if depth]
        self._catching_up = any(not _drafted_lately(situation.recent) for situation in drafting)
        return [Budget(self._nodes[depth], depth) if depth else _NOTHING for depth in depths]

    def learn(self, rounds: Sequence[Round]) -> None:
        """Enter the round into the ledger, the drafter's time into its clock, the verdicts into acceptance."""
        if not rounds or not any(record.asked.nodes for record in rounds):
            self._since += 1
            if rounds and not all(record.prompt for record in rounds):
                self._enter(rounds, self._costs.plain)
            return
        self._time(rounds)
        for record, mood in zip(rounds, self._moods, strict=True):
            if record.asked.nodes and _tells(record):
                rejected = _last(record) in record.parents
                self._acceptance.learn(mood, bool(record.parents), len(record.path), rejected)
        if not self._probing:
            self._wait, self._since = self._settings.probe_every, 0
        elif any(record.parents for record in rounds):
            self._tried += 1
            failed = self._tried > _FIRST_TRIES and not any(record.path for record in rounds)
            self._wait = min(2 * self._wait, _LONGEST_WAIT) if failed else self._settings.probe_every
            self._since = 0

    def _begin(self, requests: int) -> None:
        """A new text may be quite unlike the one before it: believe less of what was learnt, and try soon."""
        self._acceptance.fade(1.0 - 0.5 / requests)
        self._wait = self._settings.probe_every
        self._since = max(self._since, self._wait)

    def _fastest(self, limits: Sequence[int]) -> list[int]:
        """Depths of the fastest round: levels are added where they promise most for a node; the best prefix wins."""
        costs, slowdown = self._costs, self._clock.slowdown
        balance = self._ledger.balance(costs.plain)
        told = [self._acceptance.chances(mood) for mood in self._moods]
        depths, best = [0] * len(limits), [0] * len(limits)
        tokens, nodes, likely, level = float(len(limits)), 0, 0.0, 0
        fastest = tokens / costs.plain if costs.plain > 0.0 else float("inf")
        waiting = [self._promise(i, 1, told[i]) for i, limit in enumerate(limits) if limit > 0]
        heapq.heapify(waiting)
        while waiting:
            _, i = heapq.heappop(waiting)
            depth = depths[i] + 1
            offered, chances = told[i]
            added = self._nodes[depth] - self._nodes[depth - 1]
            nodes, likely, level = nodes + added, likely + offered * added, max(level, depth)
            if costs.extra(nodes, level, slowdown) > balance:
                break
            depths[i] = depth
            tokens += offered * chances[depth - 1]
            speed = tokens / costs.expected(nodes, likely, level, slowdown)
            if speed > fastest:
                fastest, best = speed, list(depths)
            if depth < limits[i]:
                heapq.heappush(waiting, self._promise(i, depth + 1, told[i]))
        return best

    def _promise(self, request: int, depth: int, told: tuple[float, list[float]]) -> tuple[float, int]:
        """Expected tokens for each node of a level, negative so that the heap gives the best first."""
        return -told[0] * told[1][depth - 1] / (self._nodes[depth] - self._nodes[depth - 1]), request

    def _may_probe(self) -> bool:
        costs, slowdown = self._costs, self._clock.slowdown
        if self._since < self._wait or not costs.could_pay(1.0):
            return False
        if not costs.could_pay(slowdown) and self._since < _HOPELESS_WAIT:
            return False
        price = costs.extra(self._nodes[1], 1, slowdown)
        patience = price / costs.plain / _PROBE_SHARE if costs.plain > 0.0 else 0.0
        return (self._since >= patience or self._tried < _FIRST_TRIES) and price <= self._ledger.balance(costs.plain)

    def _time(self, rounds: Sequence[Round]) -> None:
        """Compare the drafter's time with its calibration, in units of the target's own; charge the round."""
        costs, times = self._costs, rounds[0].times
        drafted = sum(len(record.parents) for record in rounds)
        calibrated = costs.drafting[min(max(1, *(deepest(record.parents) for record in rounds)), self._depth)]
        verified = costs.passes[min(drafted, len(costs.passes) - 1)]
        scored = times.score + times.verify + times.commit
        pace = scored / verified if scored > 0.0 and verified > 0.0 else 1.0
        proposed = times.propose / pace
        if calibrated > 0.0:
            # to find nothing may be quick; how long a draft takes is seen where there is one
            self._clock.learn(proposed / calibrated, bad_news=not self._catching_up, good_news=drafted > 0)
        believed = self._clock.slowdown * calibrated
        self._enter(rounds, verified + min(max(proposed, calibrated), believed + costs.plain))

    def _enter(self, rounds: Sequence[Round], spent: float) -> None:
        plain = self._costs.plain
        emitted = sum(record.emitted for record in rounds)
        self._ledger.enter(spent, plain * emitted / len(rounds), plain)


def _last(record: Round) -> int:
    return record.path[-1] if record.path else ROOT


def _drafted_lately(recent: Sequence[Round]) -> bool:
    """Whether a drafter with a cache has only a few tokens to read before it can draft."""
    return any(recent[-back].granted.nodes for back in range(1, min(_CATCHES_UP, len(recent)) + 1))


def _tells(record: Round) -> bool:
    """Whether what became of the draft was the target's doing alone."""
    return not (record.prompt or record.cut or record.granted != record.asked)


def _mood(recent: Sequence[Round]) -> tuple[int, int]:
    """(source, what became) of the last draft that says anything."""
    for back in range(1, min(_LOOK_BACK, len(recent)) + 1):
        record = recent[-back]
        if record.parents and _tells(record):
            fate = _WHOLE if _last(record) not in record.parents else _PARTLY if record.path else _REFUSED
            return record.source[0], fate
    return 0, _UNKNOWN
