"""A peer's process: it answers, sleeps in between, and whatever becomes of it is one clear line."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lope.bench.peers import worker as worker_file
from lope.bench.peers.process import PeerProcess
from lope.bench.system import SystemFailedError

STUB = Path(__file__).with_name("stub_peer.py")
WORKER = Path(worker_file.__file__)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[PeerProcess]:
    started = PeerProcess(Path(sys.executable), STUB, log=tmp_path / "logs" / "stub.log", environment={}, timeout=60)
    yield started
    started.close()


def _ask(first: int = 1) -> dict[str, Any]:
    return {"ids": [first, 2, 3], "max_new_tokens": 4, "stop": [], "fresh": True}


def _state(group: int) -> str:
    return Path(f"/proc/{group}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]


def _ends(process: int) -> bool:
    """Whether it is gone within 20 s."""
    deadline = time.monotonic() + 20
    while os.path.exists(f"/proc/{process}") and _state(process) != "Z":
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_it_answers_and_its_chatter_goes_to_the_log(process: PeerProcess, tmp_path: Path) -> None:
    assert process.ask({"model": "good"}) == {"versions": {"stub": "1"}}
    assert process.ask(_ask())["tokens"] == [3, 3, 3, 3]
    assert "chatter" in (tmp_path / "logs" / "stub.log").read_text(encoding="utf-8")


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_it_is_stopped_whenever_it_is_not_asked(process: PeerProcess) -> None:
    process.ask({"model": "good"})
    for _ in range(3):
        deadline = time.monotonic() + 10
        while _state(process.group) != "T" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert _state(process.group) == "T"
        process.ask(_ask())


def test_a_peer_that_dies_is_told_with_its_last_words(process: PeerProcess) -> None:
    process.ask({"model": "good"})
    with pytest.raises(SystemFailedError, match=r"it died \(signal SIGKILL\): out of words"):
        process.ask(_ask(101))
    with pytest.raises(SystemFailedError, match="it died"):
        process.ask(_ask())


def test_a_peer_that_hangs_is_given_up(process: PeerProcess) -> None:
    process.ask({"model": "good"})
    with pytest.raises(SystemFailedError, match="did not answer within its time"):
        process.ask(_ask(102), timeout=0.3)


def test_a_peer_that_fails_says_why_in_one_line(process: PeerProcess) -> None:
    process.ask({"model": "good"})
    with pytest.raises(SystemFailedError, match="ValueError: no such token"):
        process.ask(_ask(103))
    assert process.ask(_ask())["passes"] == 1


def test_a_model_that_cannot_be_opened_is_one_line(process: PeerProcess) -> None:
    with pytest.raises(SystemFailedError, match="RuntimeError: the model is broken"):
        process.ask({"model": "broken"})


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_no_sleeping_peer_outlives_a_killed_run(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from lope.bench.peers.process import PeerProcess\n"
        "p = PeerProcess(Path(sys.executable), Path(sys.argv[1]), log=Path(sys.argv[2]), environment={}, timeout=60)\n"
        "p.ask({'model': 'good'}); print(p.group, flush=True); time.sleep(600)"
    )
    words = [sys.executable, "-c", code, str(STUB), str(tmp_path / "log")]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert run.stdout is not None
    group = int(run.stdout.readline())
    run.kill()
    run.wait()
    run.stdout.close()
    assert _ends(group)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a worker ends when its stdin does")
def test_a_worker_that_falls_asleep_after_its_driver_died_is_killed_too(tmp_path: Path) -> None:
    """The kernel wakes only what was asleep when the driver died."""
    code = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.executable, sys.argv[1], sys.argv[2]], stdin=0, stdout=2, process_group=0)\n"
        "print(p.pid, flush=True); time.sleep(600)"
    )
    held, ours = os.pipe()  # the worker's stdin stays open though its driver is gone: only the kill can end it
    words = [sys.executable, "-c", code, str(WORKER), str(STUB)]
    with (tmp_path / "log").open("wb") as log:
        run = subprocess.Popen(words, stdin=held, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
    os.close(held)
    assert run.stdout is not None
    worker = int(run.stdout.readline())
    os.write(ours, b'{"model": "good"}\n')
    while not (tmp_path / "log").stat().st_size:  # its answer: it is past its start
        time.sleep(0.05)
    run.kill()
    run.wait()
    run.stdout.close()
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGSTOP)
    ended = _ends(worker)
    os.close(ours)
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)
    assert ended
