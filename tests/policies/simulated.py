"""Rounds without a model and without a clock: costs come from a calibration, verdicts from a plan."""

import dataclasses
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lope.core.budget import Budget, Round, Situation, Times
from lope.core.cost import Calibration, CostCurve

# seconds of a pass by its rows, as measured on a two-core machine in float32
STEEP = CostCurve((1, 2, 64), (0.024, 0.026, 0.144))
FLAT = CostCurve((1, 16, 64), (0.024, 0.024, 0.048))
PROPORTIONAL = CostCurve((1,), (0.024,))


def machine(passes: CostCurve, step: float = 1e-6, depth: int = 10, overhead: float = 0.0005) -> Calibration:
    """One context length; a drafter of chains that takes `step` seconds a level."""
    drafting = CostCurve(tuple(range(1, depth + 1)), tuple(step * level for level in range(1, depth + 1)))
    return Calibration((64,), (passes,), overhead, drafting, tuple(range(depth + 1)))


# (round, depth) -> how many tokens are drafted and how many of them are accepted
Plan = Callable[[int, int], tuple[int, int]]


@dataclass
class Simulation:
    """Drives a policy over chains; `accounted` and `plain` are seconds by the calibration, `depths` what was asked.

    seconds_a_level: what drafting really takes, where that is not what was calibrated.
    """

    policy: Any
    calibration: Calibration
    seconds_a_level: float | None = None
    accounted: float = 0.0
    plain: float = 0.0
    rounds: int = 0
    depths: list[tuple[int, ...]] = field(default_factory=list)
    recent: dict[int, deque[Round]] = field(default_factory=dict)
    most_behind: float = 0.0

    def play(self, plans: Sequence[Plan], count: int, length: int = 64, room: int = 10_000) -> "Simulation":
        """So many rounds of as many requests as plans; a request's first round runs its prompt."""
        numbers = range(len(plans))
        for _ in range(count):
            recents = [self.recent.setdefault(number, deque(maxlen=64)) for number in numbers]
            asked = self.policy.choose([Situation(n, length, room, True, recents[n]) for n in numbers])
            records = [self._record(n, asked[n], plans[n], not recents[n]) for n in numbers]
            self._account(records)
            for record, recent in zip(records, recents, strict=True):
                recent.append(record)
            self.policy.learn(records)
            self.depths.append(tuple(budget.depth for budget in asked))
            self.rounds += 1
        return self

    def _record(self, number: int, asked: Budget, plan: Plan, prompt: bool) -> Round:
        drafted, accepted = plan(self.rounds, asked.depth) if asked.nodes else (0, 0)
        assert accepted <= drafted <= asked.depth
        assert asked.nodes >= drafted
        return Round(
            number, asked, asked, tuple(range(-1, drafted - 1)), (0,) * drafted, tuple(range(accepted)), accepted + 1,
            cut=False, prompt=prompt, requests=1, rows=1, times=Times(0.0, 0.0, 0.0, 0.0),
        )  # fmt: skip

    def _account(self, records: list[Round]) -> None:
        """Add up the round's seconds, and tell its records."""
        requests, rows = len(records), sum(1 + len(record.parents) for record in records)
        level = max(len(record.parents) for record in records)
        proposing = self.calibration.draft_seconds(level or any(record.asked.nodes for record in records))
        if self.seconds_a_level is not None:
            proposing = self.seconds_a_level * max(record.asked.depth for record in records)
        scoring = self.calibration.seconds(rows, 64)
        times = Times(proposing, scoring, self.calibration.overhead, 0.0)
        records[:] = [dataclasses.replace(r, requests=requests, rows=rows, times=times) for r in records]
        plain = (self.calibration.seconds(requests, 64) + self.calibration.overhead) / requests
        self.accounted += proposing + scoring + self.calibration.overhead
        self.plain += plain * sum(record.emitted for record in records)
        self.most_behind = max(self.most_behind, self.accounted - 1.03 * self.plain)
