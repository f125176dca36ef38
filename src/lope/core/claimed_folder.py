"""A folder for one run at a time: two runs that write the same results would lose each other's rows."""

import contextlib
from collections.abc import Collection
from pathlib import Path

import filelock

from lope.core.errors import RunError, UsageError

_LOCK = ".lock"


class ClaimedFolder:
    """Made where it is not there, and held until `release` or the end of the process, however that comes."""

    def __init__(self, path: Path, marks: Collection[str] = ()) -> None:
        """marks: a folder that holds something and none of these is somebody else's, and refused; none: any will do.

        Raises UsageError where it is, or another run holds it, RunError where it cannot be made.
        """
        self.path = path
        try:
            held = {entry.name for entry in path.iterdir()} - {_LOCK} if path.is_dir() else set()
            if marks and held and held.isdisjoint(marks):
                raise UsageError(f"{path}: holds something else, such as {min(held)}: choose another folder")
            self._made = not path.exists()
            path.mkdir(parents=True, exist_ok=True)
            self._lock = filelock.FileLock(path / _LOCK)
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise UsageError(f"{path}: another run is writing its results there: choose another --out") from None
        except OSError as error:
            raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None

    def release(self) -> None:
        """Let others have it. A run that was refused leaves no folder that was not there before."""
        with contextlib.suppress(OSError):  # somebody may have come in between
            if self._made and [entry.name for entry in self.path.iterdir()] == [_LOCK]:
                (self.path / _LOCK).unlink()
                self.path.rmdir()
        self._lock.release()
