"""What a pass costs by its rows and its context: sizes take turns, so that noise falls on all of them alike."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lope.core.draft import EMPTY, chain
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Job, Target
from lope.core.scores import Needs
from lope.core.verdict import Verdict
from lope.engine.calibration_plan import CalibrationPlan
from lope.engine.calibration_record import Measured

Clock = Callable[[], float]


@dataclass(frozen=True, eq=False)
class PassTimer:
    """Times passes through the target's own door; `needs`: what the drafter must know of each.

    clock: seconds. advance: called after each pass.
    """

    target: Target[Any]
    needs: Needs
    vocab_size: int
    room: int
    plan: CalibrationPlan
    clock: Clock = time.perf_counter
    advance: Callable[[], None] = lambda: None

    def run(self) -> dict[int, Measured]:
        """Context -> seconds by rows. At least one row at one context is measured, however slow the machine."""
        stop = self.clock() + self.plan.pass_seconds
        sessions = self._open(stop)
        sizes = [(context, rows) for context in sessions for rows in self._rows(context)]
        samples: dict[tuple[int, int], list[float]] = {size: [] for size in sizes}
        self._measure(sessions, samples, stop)
        # the first pass of each size warms up and counts only where there was no time for another
        kept = {size: values[1:] or values for size, values in samples.items()}
        by_context = {
            context: Measured.of({rows: values for (where, rows), values in kept.items() if where == context})
            for context in sessions
        }
        return {context: measured for context, measured in by_context.items() if measured.sizes}

    def _measure(self, sessions: dict[int, Any], samples: dict[tuple[int, int], list[float]], stop: float) -> None:
        last = 0.0, 1
        for turn in range(1 + self.plan.rounds):
            for context, rows in samples if turn % 2 == 0 else reversed(samples):
                values = samples[context, rows]
                expected = values[-1] if values else last[0] * rows / last[1]
                if self.clock() + expected > stop and last[0]:
                    return
                values.append(self._time(sessions[context], rows))
                last = values[-1], rows
                self.advance()

    def _open(self, stop: float) -> dict[int, Any]:
        """A session at each context length that fits and that there is time to read."""
        most = max(self.plan.rows)
        fitting = [context for context in self.plan.contexts if context + most < self.room]
        sessions: dict[int, Any] = {}
        begun = self.clock()
        for context in fitting or [max(1, self.room // 2)]:
            taken = self.clock() - begun
            if sessions and taken + taken * context / sum(sessions) > (stop - begun) / 3:
                break
            session = self.target.open(Prompt(self._tokens(context)))
            self.target.score([Job(session, EMPTY, self.needs)])
            session.commit(EMPTY, Verdict((), self._tokens(1)))
            sessions[context] = session
        return sessions

    def _rows(self, context: int) -> list[int]:
        return [rows for rows in self.plan.rows if context + rows < self.room] or [1]

    def _time(self, session: Any, rows: int) -> float:
        job = Job(session, chain(self._tokens(rows)[1:]), self.needs)
        begun = self.clock()
        [scores] = self.target.score([job])
        float(scores.logits.values[0, 0])  # a GPU has not finished before its answer is read
        return self.clock() - begun

    def _tokens(self, count: int) -> Path:
        return spread_tokens(count, self.vocab_size)


def spread_tokens(count: int, vocab_size: int) -> Path:
    """Tokens from all over the vocabulary."""
    return tuple((7919 * index + 17) % vocab_size for index in range(count))
