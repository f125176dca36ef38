"""A peer's process: asked by JSON lines, asleep (SIGSTOP) when it is not asked, ended with all that it started."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lope.bench.system import SystemFailedError

_WORKER = Path(__file__).with_name("worker.py")


class PeerProcess:
    """One worker. It leads a process group, so that what it starts sleeps and ends with it.

    worker: the file that opens the peer. log: keeps what it prints. timeout: seconds that one answer may take.
    """

    def __init__(
        self, python: Path, worker: Path, *, log: Path, environment: Mapping[str, str], timeout: float
    ) -> None:
        self._log = log
        self._timeout = timeout
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [str(python), "-P", "-u", str(_WORKER), str(worker)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env={**os.environ, **environment},
                process_group=0,
            )
        assert self._process.stdout is not None
        self._rest = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._process.stdout, selectors.EVENT_READ)

    @property
    def group(self) -> int:
        """Its process group."""
        return self._process.pid

    def ask(self, request: Mapping[str, Any], timeout: float | None = None) -> dict[str, Any]:
        """One request, one reply; awake only in between. Raises SystemFailedError when it dies, hangs or fails."""
        self._signal(signal.SIGCONT)
        try:
            reply = self._exchange(request, time.monotonic() + (timeout or self._timeout))
        finally:
            self._signal(signal.SIGSTOP)
        if "error" in reply:
            raise SystemFailedError(reply["error"])
        return reply

    def close(self) -> None:
        """End the whole group, stopped or not."""
        self._signal(signal.SIGKILL)
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process.wait()

    def _exchange(self, request: Mapping[str, Any], deadline: float) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise SystemFailedError(self._last_words()) from None
        reply: dict[str, Any] = json.loads(self._line(deadline))
        return reply

    def _line(self, deadline: float) -> bytes:
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not self._selector.select(left):
                raise SystemFailedError(f"it did not answer within its time (--peer-timeout; its words: {self._log})")
            assert self._process.stdout is not None
            piece = os.read(self._process.stdout.fileno(), 1 << 16)
            if not piece:
                raise SystemFailedError(self._last_words())
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _last_words(self) -> str:
        self._process.wait()
        code = self._process.returncode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"it died ({how})" + (f": {lines[-1][:300]}" if lines else "")

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
