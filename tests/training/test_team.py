"""Processes that train together learn what one with all their rows would, go on from each other, and end together."""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, Popen, run
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.homes import fresh_home
from tests.training.distilling import after, distil, file_prompts
from tests.training.lessons import VOCABULARY, sequence
from torch import Tensor, nn

from lope.core.claimed_folder import ClaimedFolder
from lope.core.errors import LopeError, RunError, UsageError
from lope.models.drafter_folder import drafter_decoder
from lope.models.loaded import LoadedModel
from lope.training.batches import Batches
from lope.training.lessons import Lessons
from lope.training.losses import LOSSES
from lope.training.losses.law import Loss
from lope.training.school import School
from lope.training.standalone_net import StandaloneNet, StandalonePupil
from lope.training.team import ALONE, Team, raised_in_all, team_here
from lope.training.trainer import Report, Stage, Trainer, TrainerSettings

ROUNDING = 1e-4  # what float32 and Adam make of a sum in another order; a step moves weights by more than 1e-3
_MAKING = threading.Lock()  # threads share torch's generator
HEADS = {"num_layers": 1, "num_heads": 2, "num_kv_heads": 2, "head_dim": 16}
SIZES: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "norm_eps": 1e-5, "rope_theta": 1e4, "context": 64}


class Table:
    """Where threads lay what they know. Where one has ended, those that wait for it end too."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._laid: list[list[Any]] = [[] for _ in range(size)]
        self._ended = False
        self._changed = threading.Condition()

    def lay(self, rank: int, value: Any) -> list[Any]:
        with self._changed:
            self._laid[rank].append(value)
            self._changed.notify_all()
            number = len(self._laid[rank])
            self._changed.wait_for(lambda: self._ended or self._all(number), timeout=60)
            if not self._all(number):
                raise RunError("another has ended")
            return [laid[number - 1] for laid in self._laid]

    def _all(self, number: int) -> bool:
        return all(len(laid) >= number for laid in self._laid)

    def leave(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class Thread:
    """A team of threads of this process."""

    def __init__(self, rank: int, table: Table) -> None:
        self.rank = self._seat = rank
        self.size = table.size
        self._table = table

    def device(self, asked: str) -> str:
        return asked

    def average(self, parameters: Iterable[nn.Parameter]) -> None:
        learned = [p for p in parameters if p.requires_grad]
        laid = self._table.lay(self._seat, [p.grad for p in learned])
        for parameter, *gradients in zip(learned, *laid, strict=True):
            parameter.grad = torch.stack(gradients).mean(0)

    def total(self, tensor: Tensor) -> Tensor:
        return torch.stack(self._table.lay(self._seat, tensor)).sum(0)

    def first(self, value: Any) -> Any:
        return self._table.lay(self._seat, value)[0]

    def together(self) -> contextlib.AbstractContextManager[None]:
        return raised_in_all(lambda own: self._table.lay(self._seat, own))

    def leave(self) -> None:
        self._table.leave()


class AveragesNothing(Thread):
    """A mutant: each makes the step of its own gradient."""

    def average(self, parameters: Iterable[nn.Parameter]) -> None:
        pass


class AddsNothing(Thread):
    """A mutant: each takes its own places for those of all, so that no gradient weighs more than another."""

    def total(self, tensor: Tensor) -> Tensor:
        return tensor * self.size


class BelievesItself(Thread):
    """A mutant: each goes by its own clock."""

    def first(self, value: Any) -> Any:
        return value


class AllTakeTheSameBatch(Thread):
    """A mutant: each believes to be the first."""

    def __init__(self, rank: int, table: Table) -> None:
        super().__init__(rank, table)
        self.rank = 0


def _trainer(folder: Path, rows: int, team: Team = ALONE, **settings: Any) -> Trainer:
    """Rows differ tenfold in how much there is to learn in them."""
    kept = torch.arange(VOCABULARY - 4)
    with _MAKING:
        torch.manual_seed(0)
        net = StandaloneNet(
            drafter_decoder("standalone", len(kept), **SIZES, **HEADS), torch.randn(VOCABULARY, 16), kept
        )
    learned = [sequence(number, 9, 2 + 19 * (number % 2)) for number in range(64)]
    batches = Batches(learned, length=32, rows=rows, seed=0, features=False, joined=0.5)
    held_out = Batches([sequence(n, 3, 9) for n in range(64, 68)], length=32, rows=1, seed=0, features=False)
    stages = [Stage(name, batches, Loss(LOSSES.make(name)), 0.5) for name in ("kld", "tvd")]
    wanted = {"steps": 12, "evaluate_every": 4, "warmup": 2, "learning_rate": 5e-3, **settings}
    chosen = TrainerSettings(**wanted)
    return Trainer(StandalonePupil(net), stages, held_out, folder, chosen, lambda _: None, team=team)


def _in_threads(work: Callable[[Any], Any], kind: type[Thread] = Thread, size: int = 2) -> list[Any]:
    """What each member of a team makes of it, or how it ended."""
    table = Table(size)

    def one(rank: int) -> Any:
        try:
            return work(kind(rank, table))
        except LopeError as error:
            return error
        finally:
            table.leave()

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, range(size)))


def _trained(folder: Path, rows: int, kind: type[Thread] = Thread, **settings: Any) -> tuple[Trainer, list[Report]]:
    """The first one of two."""

    def work(team: Thread) -> tuple[Trainer, list[Report]]:
        own = folder / str(id(team)) if kind is AllTakeTheSameBatch else folder
        trainer = _trainer(own, rows, team, **settings)
        return trainer, list(trainer.run())

    found = _in_threads(work, kind)
    if isinstance(found[0], LopeError):
        raise found[0]
    return found[0]  # type: ignore[no-any-return]


def _furthest(one: Trainer, other: Trainer) -> float:
    pairs = zip(one._pupil.module.parameters(), other._pupil.module.parameters(), strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


def test_two_learn_what_one_with_twice_the_rows_does(tmp_path: Path) -> None:
    alone = _trainer(tmp_path / "one", 4)
    wanted = list(alone.run())
    trainer, reports = _trained(tmp_path / "two", 2)
    assert _furthest(trainer, alone) < ROUNDING
    assert [report.tokens for report in reports] == [report.tokens for report in wanted]
    for one, two in zip(wanted, reports, strict=True):
        assert (two.loss, *two.acceptance) == pytest.approx((one.loss, *one.acceptance), abs=ROUNDING)
    assert [json.loads(line)["step"] for line in (tmp_path / "two" / "log.jsonl").read_text().splitlines()] == [
        *range(1, 13)
    ], "one process writes"


@pytest.mark.parametrize("mutant", [AveragesNothing, AddsNothing, AllTakeTheSameBatch])
def test_a_team_that_shares_badly_learns_something_else(mutant: type[Thread], tmp_path: Path) -> None:
    alone = _trainer(tmp_path / "one", 4)
    list(alone.run())
    trainer, _ = _trained(tmp_path / "two", 2, mutant)
    assert _furthest(trainer, alone) > 10 * ROUNDING


def test_two_go_on_exactly_and_one_goes_on_from_them(tmp_path: Path) -> None:
    whole = [report.loss for report in _trained(tmp_path / "whole", 2)[1]]

    def until_killed(team: Thread) -> None:
        for report in _trainer(tmp_path / "cut", 2, team).run():
            if report.step == 7:
                return

    assert _in_threads(until_killed) == [None, None]
    assert [report.loss for report in _trained(tmp_path / "cut", 2)[1]] == whole[4:]
    state = _trainer(tmp_path / "cut", 2).state
    assert (state.step, state.places) == (12, {"kld": 12, "tvd": 12})
    one = _trainer(tmp_path / "cut", 2, steps=15)
    assert [report.step for report in one.run()] == [13, 14, 15]
    assert one.state.places == {"kld": 12, "tvd": 15}, "behind what two have read"


def _spoilt(folder: Path, kind: type[Thread]) -> list[Any]:
    """How both end where the weights of the second are no numbers from step 6 on."""

    def work(team: Thread) -> None:
        trainer = _trainer(folder, 2, team)
        for report in trainer.run():
            if report.step == 6 and team.rank == 1:
                with torch.no_grad():
                    next(trainer._pupil.module.parameters()).fill_(float("nan"))

    return _in_threads(work, kind)


def test_a_loss_that_is_no_number_in_one_ends_all_at_the_same_step(tmp_path: Path) -> None:
    for ended in _spoilt(tmp_path / "team", Thread):
        assert isinstance(ended, RunError)
        assert str(ended).startswith("the loss became nan at step 6: the last checkpoint is whole")
    assert _trainer(tmp_path / "team", 2).state.step == 4
    assert str(_spoilt(tmp_path / "mutant", AddsNothing)[0]) == "another has ended", "the first waits for it"


def _planned(folder: Path, kind: type[Thread]) -> list[Any]:
    """By two clocks, of which the second says that there is no time left."""

    def work(team: Thread) -> list[int]:
        trainer = _trainer(folder, 2, team, steps=0, minutes=0.01 if team.rank == 0 else 1e-9)
        return [report.planned for report in trainer.run()]

    return _in_threads(work, kind)


def test_the_clock_is_that_of_the_first(tmp_path: Path) -> None:
    first, second = _planned(tmp_path / "team", Thread)
    assert first == second
    assert len(first) > 10
    assert str(_planned(tmp_path / "mutant", BelievesItself)[0]) == "another has ended"


@pytest.fixture(scope="module")
def taught(tiny_model: Callable[..., LoadedModel], tmp_path_factory: pytest.TempPathFactory) -> School:
    """What one process with two rows does."""
    place = tmp_path_factory.mktemp("taught")
    distil(tiny_model("llama3"), place / "set", file_prompts(), after(30), layers=())
    lessons = Lessons(vocab=60, hidden=64, layers=1, length=32, rows=2)
    settings = TrainerSettings(steps=6, evaluate_every=3, learning_rate=0.05)
    return School(tiny_model("llama3"), place / "one", lessons, settings, sets=(place / "set",))


@pytest.fixture
def words(taught: School, tiny_folder: Callable[..., Path]) -> list[str]:
    """What two processes with one row each are told, without a set."""
    model = ["--target", str(tiny_folder("llama3")), "--dtype", "float32", "--threads", "1"]
    sizes = ["--vocab", "60", "--hidden", "64", "--layers", "1", "--length", "32", "--rows", "1"]
    pace = ["--steps", "6", "--evaluate-every", "3", "--learning-rate", "0.05"]
    return ["-m", "lope", "drafter", "train", *model, *sizes, *pace]


# accelerate's own launcher begins the processes by the same means, but chooses a port that another may take before it
LAUNCHER = ("torch.distributed.run", "--standalone", "--nproc_per_node", "2")


@contextlib.contextmanager
def _launched(words: Iterable[str], home: Path) -> Iterator[Popen[str]]:
    environment = {**os.environ, "LOPE_HOME": fresh_home(home), "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    command = [sys.executable, "-m", *LAUNCHER, *words]
    with Popen(command, env=environment, stdout=PIPE, stderr=PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()  # a launcher takes those that it has begun with it


def _checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    row = json.loads((folder / "checkpoint.json").read_text())
    return load_file(folder / row["place"] / "state.safetensors"), row["state"]


def test_two_processes_learn_what_one_does_and_one_goes_on(taught: School, words: list[str], tmp_path: Path) -> None:
    place = ["--set", str(taught.sets[0]), "--out", str(tmp_path / "two"), "--json"]
    told = ["-m", "tests.training.told_threads", *words[2:]]
    with _launched([*told, *place], tmp_path / "home") as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    at_the_end = [line for line in err.splitlines() if line.startswith("threads at the end: ")]
    assert len(at_the_end) == 2, err
    assert "gloo" not in "".join(at_the_end), "one that outlives the interpreter aborts the process"
    assert json.loads(out)["last"]["step"] == 6, "one document, of the first process"
    list(taught.run())
    (wanted, alone), (found, state) = _checkpoint(taught.out), _checkpoint(tmp_path / "two")
    assert max(float((wanted[name] - tensor).abs().max()) for name, tensor in found.items()) < ROUNDING
    assert found.keys() == wanted.keys()
    assert (alone["places"], state["places"]) == ({"output": 1, "distil": 5}, {"output": 2, "distil": 10})
    lessons, settings = replace(taught.lessons, rows=1), replace(taught.settings, steps=8)
    one = replace(taught, out=tmp_path / "two", lessons=lessons, settings=settings)
    assert [event.row["step"] for event in one.run() if event.row] == [7, 8]
    further, state = _checkpoint(tmp_path / "two")
    assert state["places"] == {"output": 2, "distil": 12}
    moved = further["weight/lm_head.weight"] - wanted["weight/lm_head.weight"]
    assert float(moved.abs().max()) > 10 * ROUNDING, "two steps are seen"


def test_ctrl_c_ends_all_with_the_checkpoint_whole(taught: School, words: list[str], tmp_path: Path) -> None:
    place = ["--set", str(taught.sets[0]), "--out", str(tmp_path / "out")]
    endless = ["--steps", "1000000", "--patience", "1000000"]
    with _launched([*words, *endless, *place], tmp_path / "home") as process:
        until = time.monotonic() + 40
        while not (tmp_path / "out" / "checkpoint.json").exists() and time.monotonic() < until:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=40)
    said = [line for line in err.splitlines() if line.startswith("lope: ")]
    assert said == ["lope: interrupted: what was finished is kept, and the same command goes on from there"], err
    assert _checkpoint(tmp_path / "out")[1]["step"] >= 3
    ClaimedFolder(tmp_path / "out").release()


def test_a_device_for_all_is_refused_in_one_line(words: list[str], tmp_path: Path) -> None:
    place = ["--device", "cuda:1", "--out", str(tmp_path / "out")]
    with _launched([*words, *place], tmp_path / "home") as process:
        out, err = process.communicate(timeout=60)
    said = [line for line in err.splitlines() if line.startswith("lope: ")]
    assert said == ["lope: each of 2 processes has a device of its own: leave out --device cuda:1"], err
    assert out == ""
    assert "exitcode  : 2" in err
    assert not (tmp_path / "out").exists()


def test_what_one_cannot_do_is_refused_by_all(taught: School, tmp_path: Path) -> None:
    def ended(school: Callable[[Team], School]) -> list[str]:
        found = _in_threads(lambda team: list(school(team).run()))
        assert all(isinstance(error, UsageError) for error in found), found
        return [str(error) for error in found]

    free = replace(taught, out=tmp_path / "out", lessons=replace(taught.lessons, rows=1))
    first, second = ended(lambda team: replace(free, team=team, sets=()))
    assert first == second
    assert "distil it first (lope drafter distill), then name it with --set" in first
    claim = ClaimedFolder(tmp_path / "out")
    first, second = ended(lambda team: replace(free, team=team))
    claim.release()
    assert first == second
    assert "another run is writing" in first
    distil(taught.model, tmp_path / "grown", file_prompts(), after(12), layers=())
    sets = [taught.sets[0], tmp_path / "grown"]
    first, second = ended(lambda team: replace(free, team=team, sets=(sets[team.rank],)))
    assert first == second
    assert first.startswith("process 1 finds another set")


def test_a_launcher_that_begins_one_process_for_several_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `accelerate launch --cpu --num_processes 2` sets, where it is not given an mpirun."""
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "True")
    assert team_here() is ALONE
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    with pytest.raises(UsageError, match="has begun one process and not several"):
        team_here()


@pytest.mark.parametrize("size", ["abc", "-1", "0", "1.5"])
def test_a_launcher_that_says_no_number_is_refused(size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", size)
    with pytest.raises(UsageError, match="WORLD_SIZE in the environment is how many processes"):
        team_here()


def test_processes_that_cannot_meet_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a launcher sets, but for where the processes meet."""
    for name, value in {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", "ACCELERATE_USE_CPU": "true"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    code = "from lope.cli.entry import main; main()"
    asked = [sys.executable, "-c", code, "drafter", "train", "--out", "nowhere", "--json"]
    ended = run(asked, capture_output=True, text=True)
    assert ended.returncode == 2, ended.stderr
    assert "the processes cannot be joined" in json.loads(ended.stdout)["error"]


def test_without_accelerate_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delitem(sys.modules, "lope.training.accelerated", raising=False)

    class Absent:
        def find_spec(self, name: str, *_: Any) -> None:
            if name == "accelerate":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.delitem(sys.modules, "accelerate", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    with pytest.raises(UsageError, match=r"pip install 'lope\[devices\]'"):
        team_here()
