"""Ctrl-C acts between rounds: a session is never left with half a round in it."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

# handlers of SIGINT that raise KeyboardInterrupt and do no more; what else a program has installed is left alone
RAISING: list[Callable[[int, FrameType | None], Any]] = [signal.default_int_handler]


class Uninterrupted:
    """A block that Ctrl-C waits for. A second Ctrl-C does not wait. Does nothing outside the main thread."""

    def __enter__(self) -> "Uninterrupted":
        self._pressed = False
        self._before = None
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if any(before is handler for handler in RAISING):
                self._before = signal.signal(signal.SIGINT, self._wait)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self._pressed and error is None:
            raise KeyboardInterrupt

    def _wait(self, number: int, frame: FrameType | None) -> None:
        if self._pressed:
            raise KeyboardInterrupt
        self._pressed = True
