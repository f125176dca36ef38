"""The trainer learns, goes on exactly where it was, stops early, and loses nothing when something breaks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.training.lessons import VOCABULARY, sequence

from lope.core.errors import RunError, UsageError
from lope.models.drafter_folder import drafter_decoder
from lope.training import checkpoint_folder
from lope.training.batches import Batches
from lope.training.losses import LOSSES
from lope.training.losses.law import Loss
from lope.training.standalone_net import StandaloneNet, StandalonePupil
from lope.training.trainer import Report, Stage, State, Trainer, TrainerSettings

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_layers": 1,
    "num_heads": 2,
    "num_kv_heads": 2,
    "head_dim": 16,
    "norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "context": 64,
}


def _trainer(folder: Path, keep: Callable[[State], None] = lambda _: None, **settings: Any) -> Trainer:
    torch.manual_seed(0)
    kept = torch.arange(VOCABULARY - 4)
    net = StandaloneNet(drafter_decoder("standalone", len(kept), **SIZES), torch.randn(VOCABULARY, 16), kept)
    learned = [sequence(number, 3, 12) for number in range(40)]
    batches = Batches(learned, length=32, rows=2, seed=0, features=False, joined=0.5)
    held_out = Batches([sequence(n, 3, 9) for n in range(40, 44)], length=32, rows=1, seed=0, features=False)
    stages = [
        Stage("first", batches, Loss(LOSSES.make("kld")), 0.5),
        Stage("then", batches, Loss(LOSSES.make("tvd")), 0.5),
    ]
    wanted = TrainerSettings(**{"steps": 30, "evaluate_every": 5, "warmup": 4, "learning_rate": 5e-3, **settings})
    return Trainer(StandalonePupil(net), stages, held_out, folder, wanted, keep)


def _curve(reports: list[Report]) -> list[tuple[int, str, float]]:
    return [(report.step, report.stage, report.loss) for report in reports]


def test_it_learns_what_the_target_says(tmp_path: Path) -> None:
    reports = list(_trainer(tmp_path, steps=120).run())
    looks = [report.held_out[0] for report in reports if report.held_out]
    assert looks[-1] > 0.6 > looks[0], "three quarters of the target's law can be said with the kept tokens"
    assert {report.stage for report in reports} == {"first", "then"}
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in logged] == list(range(1, 121))


@pytest.mark.parametrize("cut", [5, 12])
def test_a_resumed_training_has_the_same_loss_curve(tmp_path: Path, cut: int) -> None:
    whole = _curve(list(_trainer(tmp_path / "whole").run()))
    first = _trainer(tmp_path / "cut")
    begun = []
    for report in first.run():
        begun.append(report)
        if report.step == cut:
            break
    first.save()
    again = list(_trainer(tmp_path / "cut").run())
    assert _curve(begun + again) == whole


def test_a_killed_training_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    whole = _curve(list(_trainer(tmp_path / "whole").run()))
    for report in _trainer(tmp_path / "killed").run():
        if report.step == 13:
            break
    again = list(_trainer(tmp_path / "killed").run())
    assert _curve(again) == whole[10:], "steps 11 to 13 are made again, the same"
    logged = [json.loads(line)["step"] for line in (tmp_path / "killed" / "log.jsonl").read_text().splitlines()]
    assert logged == list(range(1, 31))


def test_it_stops_early_when_nothing_gets_better(tmp_path: Path) -> None:
    reports = list(_trainer(tmp_path, learning_rate=1e-12, patience=2, steps=500).run())
    assert reports[-1].step <= 20


def test_the_best_drafter_is_kept_not_the_last(tmp_path: Path) -> None:
    kept: list[float] = []
    list(_trainer(tmp_path, keep=lambda state: kept.append(state.best)).run())
    assert kept == sorted(kept)
    assert len(kept) == len(set(kept)) > 1


def test_minutes_become_steps(tmp_path: Path) -> None:
    trainer = _trainer(tmp_path, steps=0, minutes=0.02)
    reports = list(trainer.run())
    assert reports[-1].step == trainer.state.planned > 0


def test_a_loss_that_is_no_number_ends_it_with_the_checkpoint_whole(tmp_path: Path) -> None:
    trainer = _trainer(tmp_path)
    reports = trainer.run()
    for _ in range(5):
        next(reports)
    with torch.no_grad():
        next(trainer._pupil.module.parameters()).fill_(float("nan"))
    with pytest.raises(RunError, match="the loss became nan at step 5"):
        next(reports)
    assert _trainer(tmp_path).state.step == 5


def test_a_full_disk_ends_it_with_the_checkpoint_before_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = checkpoint_folder.save_file
    calls: list[int] = []

    def full(*args: Any, **named: Any) -> None:
        calls.append(1)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        written(*args, **named)

    monkeypatch.setattr(checkpoint_folder, "save_file", full)
    with pytest.raises(RunError, match="checkpoint before it is whole"):
        list(_trainer(tmp_path).run())
    assert _trainer(tmp_path).state.step == 5


def test_the_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    list(_trainer(tmp_path).run())
    net = StandaloneNet(drafter_decoder("standalone", 4, **SIZES), torch.randn(VOCABULARY, 16), torch.arange(4))
    batches = Batches([sequence(0, 3, 9)], length=16, rows=1, seed=0, features=False)
    stage = Stage("only", batches, Loss(LOSSES.make("kld")), 1.0)
    with pytest.raises(UsageError, match="is not a checkpoint of this training"):
        Trainer(StandalonePupil(net), [stage], batches, tmp_path, TrainerSettings(), lambda _: None)


def test_a_weight_of_another_shape_is_refused(tmp_path: Path) -> None:
    list(_trainer(tmp_path).run())
    path = tmp_path / json.loads((tmp_path / "checkpoint.json").read_text())["place"] / "state.safetensors"
    held = load_file(path)
    norm = next(name for name in held if name.startswith("weight/") and held[name].dim() == 1)
    for name in (norm, norm.replace("weight/", "exp_avg/")):
        save_file({**held, name: held[name][:1].clone()}, path)
        with pytest.raises(UsageError, match=r"is not a checkpoint of this training: .* is \[1\] there and "):
            _trainer(tmp_path)


def test_a_disk_that_is_full_from_the_beginning_leaves_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint_folder, "save_file", full)
    with pytest.raises(RunError, match="cannot be written") as caught:
        list(_trainer(tmp_path).run())
    assert "whole" not in str(caught.value)


def test_a_gradient_that_is_no_number_reaches_neither_weights_nor_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = _trainer(tmp_path)
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda *_: torch.tensor(float("nan")))
    with pytest.raises(RunError, match="the gradient became nan at step 0"):
        list(trainer.run())
    assert all(bool(parameter.isfinite().all()) for parameter in trainer._pupil.module.parameters())


def test_weights_that_are_spoilt_by_the_last_step_before_a_look_are_in_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = _trainer(tmp_path)
    reports = trainer.run()
    for _ in range(9):
        next(reports)
    stepped = trainer._optimizer.step

    def spoil() -> None:
        stepped()
        with torch.no_grad():
            next(trainer._pupil.module.parameters()).fill_(float("nan"))

    monkeypatch.setattr(trainer._optimizer, "step", spoil)
    with pytest.raises(RunError, match="the loss of held-out answers became nan at step 10"):
        next(reports)
    assert _trainer(tmp_path).state.step == 5


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "3",
        "[" * 100_000,
        '{"place": "checkpoint-a"}',
        '{"place": "../elsewhere", "state": {}}',
        '{"place": "checkpoint-a", "state": {}}',
        '{"place": "checkpoint-a", "state": {"step": "x"}}',
        '{"place": "checkpoint-b", "state": {"step": 10, "planned": 20, "seconds": 1.0, "tokens": 9, "best": NaN, '
        '"since_best": 0, "held_out": [0.5], "places": {}}}',
        '{"place": "checkpoint-b", "state": {"step": 10, "planned": 20, "seconds": 1.0, "tokens": 9, "best": 0.1, '
        '"since_best": 0, "held_out": ["x"], "places": {}}}',
    ],
)
def test_a_pointer_that_is_none_is_one_clear_line(tmp_path: Path, content: str) -> None:
    list(_trainer(tmp_path).run())
    (tmp_path / "checkpoint.json").write_text(content)
    with pytest.raises(UsageError, match=r"checkpoint\.json: is not a pointer to a checkpoint"):
        _trainer(tmp_path)


def test_a_log_with_bytes_that_are_no_text_loses_those_lines_only(tmp_path: Path) -> None:
    list(_trainer(tmp_path, steps=6).run())
    with (tmp_path / "log.jsonl").open("ab") as file:
        file.write(b"\xff\xfe\n")
    list(_trainer(tmp_path, steps=8).run())
    steps = [json.loads(line)["step"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert steps == list(range(1, 9))
