"""The largest memory that this process held since it was last asked to forget (Linux; elsewhere: nobody knows)."""

from pathlib import Path

_STATUS = Path("/proc/self/status")
_FORGET = Path("/proc/self/clear_refs")


class PeakMemory:
    """Counts from `reset` on."""

    def reset(self) -> None:
        """Forget the peak so far; where that is not allowed, it stays in the figure."""
        try:
            _FORGET.write_text("5", encoding="ascii")
        except OSError:
            return

    def read(self) -> int | None:
        """Bytes of resident memory at the peak."""
        try:
            lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            return None
        found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
        return int(found[0]) * 1024 if found else None
