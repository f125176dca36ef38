"""`lope drafter eval` without its command line: a drafter over a suite at several operating points."""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from lope.bench.evaluation import Evaluation
from lope.bench.operating_point import OperatingPoint
from lope.bench.point_figures import PointFigures
from lope.bench.record import Row
from lope.bench.speed import SpeedRun, SpeedSettings
from lope.bench.summary import Figures
from lope.core import commas
from lope.core.cost import Calibration
from lope.core.whole_file import write_whole
from lope.engine.calibration import EngineCalibration
from lope.models.config_json import read_json
from lope.models.drafter_folder import ABOUT, DrafterFolder
from lope.training.drafter_size import num_parameters
from lope.training.model_card import write_card

_PLAIN, _AGAIN = "plain", "plain again"


@dataclass(frozen=True)
class EvaluationSettings:
    """drafter: its folder. points: what it is run at.

    beside: other drafters, by name or as configurations; `none` is nothing.
    speed:  the rest of the run; its own configurations are not looked at.
    """

    drafter: Path
    points: tuple[OperatingPoint, ...]
    beside: tuple[str, ...]
    speed: SpeedSettings


class DrafterEvaluation:
    """A run that is ready: iterate `run.rows()`, then `finish`. Close `run` whatever happens."""

    def __init__(self, settings: EvaluationSettings, say: Callable[[str], None]) -> None:
        """Load target and drafter, and find this machine's calibration for each shape: what is not saved is measured.

        Raises LopeError for whatever cannot be done.
        """
        self._settings = settings
        self._about = DrafterFolder.read(settings.drafter).about
        configs = _configurations(settings, self._about.kind)
        self.run = SpeedRun(dataclasses.replace(settings.speed, configs=configs), say)
        try:
            self._calibrations = self._calibrate()
        except BaseException:
            self.run.close()
            raise

    def finish(self) -> Evaluation:
        """Write the report of all rows there are; what they say. Raises RunError where the disk is full."""
        summary = self.run.finish()
        rows = self._rows()
        plain = {row.id: row for row in rows[_PLAIN]}
        turns = [turn for row in rows[_PLAIN] for turn in row.turns]
        context = round(fmean(turn.prompt_tokens + len(turn.tokens) / 2 for turn in turns)) if turns else 1
        cost = num_parameters(self._about) / self.run.engines[_PLAIN].model.backend.num_parameters
        points = []
        for point in self._settings.points:
            alike = [row for each in self._settings.points if each.shape == point.shape for row in rows[each.name]]
            acceptance = Figures.of(alike, {}).acceptance
            calibration = self._calibrations[point.shape]
            points.append(PointFigures.of(point, rows[point.name], plain, acceptance, cost, calibration, context))
        own = {_PLAIN, *(point.name for point in self._settings.points)}
        others = {name: figures for name, figures in summary.overall.items() if name not in own}
        return Evaluation(self.run.results.head["settings"], cost, context, tuple(points), others, summary)

    def write(self, found: Evaluation) -> None:
        """Put the figures into the drafter's folder and its card; of greedy answers the best operating point, if known.

        Raises ModelError or RunError.
        """
        path = self._settings.drafter / ABOUT
        document = read_json(path)
        measured = {"eval" if found.greedy else "eval_sampled": found.to_json()}
        document["figures"] = {**document.get("figures", {}), **measured}
        if found.greedy and found.best is not None:
            document["operating_point"] = found.operating_point()
        write_whole(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        write_card(self._settings.drafter)

    def _calibrate(self) -> dict[str, Calibration | None]:
        """By shape; None where the machine was too busy to measure what can be relied on, which has been said.

        What one shape measures of the passes replaces what another did: all are read at the end.
        """
        engines = {point.shape: EngineCalibration(self.run.engines[point.name]) for point in self._settings.points}
        for calibration in engines.values():
            calibration.ready()
        return {shape: calibration.saved() for shape, calibration in engines.items()}

    def _rows(self) -> dict[str, list[Row]]:
        rows: dict[str, list[Row]] = {name: [] for name in self.run.engines}
        for row in self.run.results.rows:
            rows[row.system].append(row)
        return rows


def _configurations(settings: EvaluationSettings, kind: str) -> tuple[str, ...]:
    """Plain decoding twice, the drafter at every point, the others."""
    own = [point.configuration(f"{kind}:path={commas.within(str(settings.drafter))}") for point in settings.points]
    beside = [text for text in settings.beside if text != "none"]
    others = [text if "=" in text else f"name={text},drafter={text}" for text in beside]
    return (f"name={_PLAIN},drafter=none", f"name={_AGAIN},drafter=none", *own, *others)
