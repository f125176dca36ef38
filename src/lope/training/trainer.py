"""Teaches a pupil: stages of lessons, a learning rate that falls to the end, exact resume, early stopping.

Processes that train together take the batches in turn and make the same steps: what decides how a training goes on is
what all have in common, so that none waits for another that has ended.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from lope.core import checks
from lope.core.errors import RunError
from lope.training.batches import Batches
from lope.training.checkpoint_folder import CheckpointFolder
from lope.training.losses.law import Loss
from lope.training.pupil import Pupil
from lope.training.team import ALONE, Team
from lope.training.training_log import TrainingLog

_FINAL_RATE = 0.05  # of the highest learning rate


@dataclass(frozen=True, eq=False)
class Stage:
    """Lessons of one kind. share: of the steps of the whole training."""

    name: str
    batches: Batches
    loss: Loss
    share: float


@dataclass(frozen=True)
class TrainerSettings:
    """steps: 0 for as many as fit into `minutes`. patience: evaluations without a better one before it stops early."""

    minutes: float = 60.0
    steps: int = 0
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    warmup: int = 40
    clip: float = 1.0
    evaluate_every: int = 100
    patience: int = 12

    def __post_init__(self) -> None:
        checks.above("minutes", self.minutes, 0.0)
        checks.at_least("steps", self.steps, 0)
        checks.above("learning_rate", self.learning_rate, 0.0)
        checks.between("learning_rate", self.learning_rate, 0.0, 1000.0)
        checks.at_least("weight_decay", self.weight_decay, 0.0)
        checks.at_least("warmup", self.warmup, 1)
        checks.above("clip", self.clip, 0.0)
        checks.at_least("evaluate_every", self.evaluate_every, 1)
        checks.at_least("patience", self.patience, 1)


@dataclass
class State:
    """Where a training is; all of it is in a checkpoint, so that a resumed one makes the same steps."""

    step: int = 0
    planned: int = 0
    seconds: float = 0.0
    tokens: int = 0
    best: float = -1.0
    since_best: int = 0
    held_out: tuple[float, ...] = ()
    places: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, row: Mapping[str, Any], checkpoints: CheckpointFolder) -> "State":
        """From a checkpoint. Raises UsageError for anything but what `asdict` gave."""
        new = cls()
        for name, value in asdict(new).items():
            wanted: Any = {tuple: list, float: (int, float)}.get(type(value), type(value))
            if not isinstance(row.get(name), wanted):
                raise checkpoints.refuse(f"its state has no {name}")
        numbers = (row["seconds"], row["best"], *row["held_out"])
        if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
            raise checkpoints.refuse("its state has figures that are no numbers")
        if row["step"] < 1 or row.keys() != asdict(new).keys():
            raise checkpoints.refuse("its state is that of no training")
        return cls(**{**row, "held_out": tuple(row["held_out"])})


@dataclass(frozen=True)
class Report:
    """One line of the log."""

    step: int
    planned: int
    stage: str
    loss: float
    acceptance: tuple[float, ...]
    rate: float
    tokens: int
    seconds: float
    held_out: tuple[float, ...] | None = None


class Trainer:
    """Runs the stages over a pupil; log.jsonl and checkpoints go to `folder`; `keep` writes the best drafter so far.

    Of a team every process has a trainer; only process 0 writes.
    """

    def __init__(
        self,
        pupil: Pupil,
        stages: Sequence[Stage],
        held_out: Batches,
        folder: Path,
        settings: TrainerSettings,
        keep: Callable[[State], None],
        about: Mapping[str, Any] | None = None,
        team: Team = ALONE,
    ) -> None:
        """about: what is trained, as the checkpoints say it. Raises UsageError where a checkpoint does not fit."""
        self._pupil = pupil
        self._device = next(pupil.module.parameters()).device
        self._stages = stages
        self._held_out = held_out
        self._settings = settings
        self._keep = keep
        self._team = team
        self._log = TrainingLog(folder)
        self._checkpoints = CheckpointFolder(folder, about)
        matrices = [p for p in pupil.module.parameters() if p.dim() >= 2]
        others = [p for p in pupil.module.parameters() if p.dim() < 2]
        groups: list[dict[str, Any]] = [{"params": matrices}, {"params": others, "weight_decay": 0.0}]
        decay = settings.weight_decay
        self._optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate, weight_decay=decay, betas=(0.9, 0.95))
        state = self._checkpoints.load(pupil.module, self._optimizer)
        self.state = State() if state is None else State.of(state, self._checkpoints)
        self.state.planned = settings.steps or self.state.planned
        if team.rank == 0:
            self._log.begin(self.state.step)

    def run(self) -> Iterator[Report]:
        """Train to the end, or until held-out acceptance no longer rises. Raises RunError where it cannot go on."""
        if self.state.step:
            self._plan()
        last = time.perf_counter()
        while not self._finished():
            report = self._step()
            now = time.perf_counter()
            self.state.seconds, last = self.state.seconds + now - last, now
            if self.state.step % self._settings.evaluate_every == 0 or self._finished():
                report = self._evaluate(report)
                now = time.perf_counter()
                self.state.seconds, last = self.state.seconds + now - last, now
                self._plan()
                self.save()
            elif self.state.step == 10 or not self.state.planned:
                self._plan()
            if self._team.rank == 0:
                self._log.write(asdict(report))
            yield report

    def save(self) -> None:
        """A checkpoint now: where the user has stopped the training."""
        if self._team.rank == 0:
            self._checkpoints.save(self._pupil.module, self._optimizer, asdict(self.state))

    def _finished(self) -> bool:
        state = self.state
        return bool(state.planned and state.step >= state.planned) or state.since_best >= self._settings.patience

    def _plan(self) -> None:
        """How many steps there will be: fixed, or what the time left allows at the pace so far."""
        if not self._settings.steps:
            pace = self.state.seconds / self.state.step
            left = max(0.0, self._settings.minutes * 60 - self.state.seconds)
            self.state.planned = self._team.first(self.state.step + max(0, math.floor(left / pace)))

    def _stage(self) -> Stage:
        done = self.state.step / self.state.planned if self.state.planned else 0.0
        end = 0.0
        for stage in self._stages:
            end += stage.share
            if done < end:
                return stage
        return self._stages[-1]

    def _rate(self) -> float:
        done = min(1.0, self.state.step / max(1, self.state.planned, self._settings.warmup))
        falling = _FINAL_RATE + (1.0 - _FINAL_RATE) * 0.5 * (1.0 + math.cos(math.pi * done))
        return self._settings.learning_rate * falling * min(1.0, (self.state.step + 1) / self._settings.warmup)

    def _step(self) -> Report:
        state, stage, rate, team = self.state, self._stage(), self._rate(), self._team
        number = state.places.get(stage.name, 0)
        epoch, place = divmod(number + team.rank, stage.batches.per_epoch)
        batch = stage.batches.at(epoch, place).to(self._device)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.zero_grad(set_to_none=True)
        lesson = self._pupil.losses(batch, stage.loss)
        counts = [lesson.accepted, lesson.places, batch.answer.sum().cpu()[None]]
        accepted, places, tokens = team.total(torch.cat(counts).double()).split([len(part) for part in counts])
        # a loss is a mean over places: weighed by its share of them, the mean of all is that of one large batch
        taught = lesson.loss * float(team.size * lesson.places[0] / places[0].clamp(min=1.0))
        loss = self._finite("loss", team.total(taught.detach()) / team.size)
        taught.backward()
        team.average(self._pupil.module.parameters())
        self._finite("gradient", torch.nn.utils.clip_grad_norm_(self._pupil.module.parameters(), self._settings.clip))
        self._optimizer.step()
        state.step += 1
        state.places[stage.name] = number + team.size
        state.tokens += int(tokens)
        acceptance = tuple((accepted / places.clamp(min=1.0)).tolist())
        return Report(state.step, state.planned, stage.name, loss, acceptance, rate, state.tokens, state.seconds)

    def _finite(self, name: str, value: torch.Tensor) -> float:
        """The value. Raises RunError where it is not finite, before anything of it gets into weights or checkpoint."""
        found = float(value.detach())
        if not math.isfinite(found):
            kept = "the last checkpoint is whole; " if self._checkpoints.found else ""
            raise RunError(f"the {name} became {found} at step {self.state.step}: {kept}try a lower --learning-rate")
        return found

    @torch.no_grad()
    def _evaluate(self, report: Report) -> Report:
        accepted = places = loss = torch.zeros(())
        for number in range(self._held_out.per_epoch):
            lesson = self._pupil.losses(self._held_out.at(0, number).to(self._device), self._stages[-1].loss)
            accepted, places = accepted + lesson.accepted, places + lesson.places
            loss = loss + lesson.loss.cpu()
        self._finite("loss of held-out answers", self._team.total(loss))
        held_out = self._team.first(tuple((accepted / places.clamp(min=1.0)).tolist()))
        worth = sum(math.prod(held_out[: step + 1]) for step in range(len(held_out)))
        self.state.since_best += 1
        if worth > self.state.best:
            self.state.best, self.state.since_best, self.state.held_out = worth, 0, held_out
            if self._team.rank == 0:
                self._keep(self.state)
        return Report(**{**asdict(report), "held_out": held_out})
