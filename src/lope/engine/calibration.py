"""An engine's calibration: what was saved for it, or measured now and saved."""

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lope.core.cost import Calibration, CostCurve
from lope.core.errors import DraftError, LopeError, RunError, UsageError
from lope.core.scores import Needs
from lope.engine.calibration_drafts import DraftTimer
from lope.engine.calibration_folder import CalibrationFolder
from lope.engine.calibration_passes import Clock, PassTimer
from lope.engine.calibration_place import CalibrationPlace
from lope.engine.calibration_plan import QUICK, CalibrationPlan
from lope.engine.calibration_record import CalibrationRecord
from lope.engine.parts import Parts

if TYPE_CHECKING:
    from lope.engine.engine import Engine

_NO_DRAFTS = Calibration((1,), (CostCurve((1,), (1.0,)),), 0.0)


class EngineCalibration:
    """Finds or makes the calibration of one engine."""

    def __init__(self, engine: "Engine", folder: CalibrationFolder | None = None) -> None:
        self._engine = engine
        self._folder = folder or CalibrationFolder.default()
        self.place = CalibrationPlace.of(engine.model, engine.exact)

    @property
    def drafter(self) -> str:
        """The engine's drafter as the file names it."""
        return known_as(self._engine.parts)

    @property
    def path(self) -> Path:
        """The file for this engine."""
        return self._folder.path(self.place)

    def read(self) -> CalibrationRecord:
        """What was saved for this engine. Raises UsageError: one line that says why there is nothing to use."""
        record = self._folder.read(self.place)
        try:
            record.calibration(self.drafter)
        except UsageError as error:
            raise UsageError(f"{self.path}: {error}") from None
        return record

    def saved(self) -> Calibration | None:
        """What was saved for this engine, or None. Measures nothing."""
        try:
            return self.read().calibration(self.drafter)
        except LopeError:
            return None

    def ready(self) -> Calibration:
        """What was saved, or else a quick measurement of at most 20 s, which is announced on stderr and saved."""
        try:
            return self.read().calibration(self.drafter)
        except LopeError as reason:
            _say(f"{reason}: measuring for up to 20 s (lope calibrate measures longer)")
        try:
            record = self.measure(QUICK)
        except DraftError as error:
            if not self._engine.fall_back:
                raise
            _say(f"{error}; nothing is drafted")
            return _NO_DRAFTS
        try:
            self.save(record)
        except LopeError as error:
            _say(str(error))
        return record.calibration(self.drafter)

    def measure(
        self, plan: CalibrationPlan, *, clock: Clock = time.perf_counter, advance: Callable[[], None] = lambda: None
    ) -> CalibrationRecord:
        """Measure passes, drafts and overhead as `plan` says; `advance` is called after each pass or round."""
        engine, backend = self._engine, self._engine.model.backend
        needs = engine.drafter.needs | Needs(logits=1)
        timer = PassTimer(engine.target, needs, backend.vocab_size, backend.context, plan, clock, advance)
        passes = timer.run()
        overhead, drafts = DraftTimer(engine, plan, clock, advance).run()
        return CalibrationRecord(
            place=self.place,
            name=engine.model.name,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            quick=plan.quick,
            contexts=tuple(passes),
            passes=tuple(passes.values()),
            overhead=overhead,
            drafters={self.drafter: drafts},
        )

    def save(self, record: CalibrationRecord) -> str:
        """Write a record; the path of its file. Raises RunError where it cannot, or should not."""
        if not record.complete:
            sizes = max(len(measured.sizes) for measured in record.passes)
            raise RunError(
                f"the calibration is not saved: there was time for passes of {sizes} size{'s'[: sizes != 1]} only, "
                "this machine is too busy or too slow; lope calibrate measures longer"
            )
        return str(self._folder.write(record))


def known_as(parts: Parts) -> str:
    """A drafter as calibrations name it: what it drafts by is part of what it costs."""
    return f"{parts.drafter} | shape {parts.shape} | stop {parts.draft_stop}"


def _say(line: str) -> None:
    sys.stderr.write(f"lope: {line}\n")
    sys.stderr.flush()
