"""From a target and nothing else to a drafter: it distils first where no set is given, then it teaches."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lope.core.claimed_folder import ClaimedFolder
from lope.core.errors import UsageError, UsedUpError
from lope.models.drafter_folder import DrafterFolder
from lope.models.loaded import LoadedModel
from lope.training.checkpoint_folder import POINTER
from lope.training.distillation import Distillation
from lope.training.distilled_set import DistilledSet
from lope.training.lessons import Lessons
from lope.training.prompt_sources import read_lines
from lope.training.teaching import Teaching
from lope.training.team import ALONE, Team
from lope.training.trainer import TrainerSettings
from lope.training.training_log import LOG, TrainingLog

# of the time: the more a drafter has read, the further it gets, but it must also be read
_DISTILLING = 0.5
# what a folder holds in which a training has begun; a distilled set alone may lie in a folder of the user's
_OURS = (LOG, POINTER)


@dataclass(frozen=True)
class Event:
    """How far it is. done: of the stage at hand, 0 to 1. row: a line of the training's log."""

    stage: str
    done: float
    words: str
    row: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class School:
    """sets: distilled already; none: half of the minutes go into one in `out`/set. text: a file of plain text.

    team: the processes of this training; each has a school.
    """

    model: LoadedModel
    out: Path
    lessons: Lessons
    settings: TrainerSettings
    sets: tuple[Path, ...] = ()
    prompts: str = "own"
    text: Path | None = None
    init: Path | None = None
    team: Team = ALONE

    def run(self) -> Iterator[Event]:
        """All of it. Interrupted at any moment, the same call goes on from there.

        Raises UsageError where another process is at it, and for what cannot be done.
        """
        if self.text is not None and self.lessons.kind == "eagle":
            raise UsageError("plain text has no hidden states for a feature drafter: --text is for a stand-alone one")
        if self.sets and self.prompts != "own":
            raise UsageError("prompts are distilled where no set is given: either --set or --prompts")
        if self.team.size > 1 and not self.sets:
            raise UsageError(
                f"{self.team.size} processes learn from a set that is there: distil it first (lope drafter distill), "
                "then name it with --set"
            )
        with self.team.together():  # none goes on where the first is refused
            claim = ClaimedFolder(self.out, _OURS) if self.team.rank == 0 else None
        try:
            yield from self._run()
        finally:
            if claim is not None:
                claim.release()

    def _run(self) -> Iterator[Event]:
        texts = () if self.text is None else tuple(read_lines(self.text))
        settings = self.settings
        if not self.sets:
            TrainingLog(self.out).claim()
            yield from self._distil()
            settings = replace(settings, minutes=settings.minutes * (1.0 - _DISTILLING))
        with self.team.together():
            sets = [DistilledSet.open(path) for path in self.sets or (self.out / "set",)]
        teaching = Teaching(self.model, sets, self.out, self.lessons, settings, texts, self.init, self.team)
        for report in teaching.run():
            heard = ", ".join(f"{value:.2f}" for value in report.acceptance)
            words = f"step {report.step}/{report.planned} · loss {report.loss:.3f} · acceptance {heard}"
            yield Event(report.stage, report.step / max(1, report.planned), words, asdict(report))

    def figures(self) -> dict[str, Any]:
        """What the drafter folder says of the training."""
        return dict(DrafterFolder.read(self.out).about.figures)

    def _distil(self) -> Iterator[Event]:
        wanted = _DISTILLING * self.settings.minutes * 60
        features = self.lessons.kind == "eagle"
        distillation = Distillation(self.model, self.out / "set", self.prompts, self.lessons.seed, features=features)
        try:
            for progress in distillation.run(wanted):
                pace = progress.tokens / max(1.0, progress.seconds)
                words = f"{progress.tokens} answer tokens · {pace:.0f} tokens/s"
                yield Event("distilling", min(1.0, progress.seconds / wanted), words)
        except UsedUpError as error:
            yield Event("distilling", 1.0, str(error))  # what was said is what there is to learn from
