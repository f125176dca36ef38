"""How far a run of minutes or hours is: a bar on a terminal, a line now and then on stderr where nobody sees a bar."""

import time
from types import TracebackType
from typing import Self

from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from lope.cli.output import complaints


def time_left(seconds: float) -> str:
    """In minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d} left"


class LongRun:
    """A context manager. silent: show nothing. every: seconds between lines."""

    def __init__(self, *, silent: bool, every: float = 30.0) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[words]}"))
        self._on_terminal = complaints.is_terminal
        hidden = silent or not self._on_terminal
        self._bar = Progress(*columns, console=complaints, transient=True, disable=hidden)
        self._task = self._bar.add_task("", total=1.0, words="")
        self._silent = silent
        self._every = every
        self._next = time.monotonic() + every

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def show(self, stage: str, done: float, words: str) -> None:
        """done: from 0 to 1."""
        self._bar.update(self._task, completed=done, description=escape(stage), words=escape(words))
        if self._silent or self._on_terminal or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._every
        complaints.print(f"{stage}: {done:.0%}, {words}", markup=False, soft_wrap=True)
