"""A folder for one run at a time: two runs that write the same results would lose each other's rows."""

from pathlib import Path

import filelock

from lope.core.errors import RunError, UsageError


class ClaimedFolder:
    """Made where it is not there, and held until `release` or the end of the process, however that comes."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError where another run holds it, RunError where it cannot be made."""
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = filelock.FileLock(path / ".lock")
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise UsageError(f"{path}: another run is writing its results there: choose another --out") from None
        except OSError as error:
            raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None

    def release(self) -> None:
        """Let others have it."""
        self._lock.release()
