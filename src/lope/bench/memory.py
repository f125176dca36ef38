"""The largest memory that processes held since they were last asked to forget (Linux; elsewhere nobody knows)."""

import os
from pathlib import Path

_PROC = Path("/proc")


class PeakMemory:
    """Counts from `reset` on: this process's memory, or that of all processes of a group, their peaks added up."""

    def __init__(self, group: int | None = None) -> None:
        self._group = group

    def reset(self) -> None:
        """Forget the peak so far; where that is not allowed, it stays in the figure."""
        for process in self._processes():
            try:
                (process / "clear_refs").write_text("5", encoding="ascii")
            except OSError:
                continue

    def read(self) -> int | None:
        """Bytes of resident memory at the peak."""
        found = []
        for process in self._processes():
            try:
                lines = (process / "status").read_text(encoding="ascii", errors="replace").splitlines()
            except OSError:
                continue
            found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")]
        return sum(found) or None

    def _processes(self) -> list[Path]:
        if self._group is None:
            return [_PROC / "self"]
        return [path for path in _PROC.glob("[0-9]*") if _group_of(path) == self._group]


def _group_of(process: Path) -> int | None:
    try:
        return os.getpgid(int(process.name))
    except OSError:
        return None
