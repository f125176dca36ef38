"""Where lope keeps what it fetched, converted or measured: `$LOPE_HOME`, or the platform's cache folder."""

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import filelock
import platformdirs

from lope.core.errors import ModelError


@dataclass(frozen=True)
class CacheFolder:
    """A folder whose entries are whole or absent, whoever dies or competes while they are made."""

    root: Path

    @classmethod
    def default(cls) -> "CacheFolder":
        """`$LOPE_HOME` where it is set and not empty, else `lope` in the user's cache folder."""
        home = os.environ.get("LOPE_HOME")
        return cls(Path(home).expanduser() if home else platformdirs.user_cache_path("lope"))

    @property
    def models(self) -> Path:
        """Model files and folders."""
        return self.root / "models"

    def model(self, name: str, write: Callable[[Path], None], *, num_bytes: int = 0) -> Path:
        """The model file or folder of that name; where there is none, `write(path)` makes it.

        One process writes, others wait for it. It is written beside its place and renamed into it when whole, so a
        kill leaves nothing that looks finished; what a kill left behind is removed by the next writer. num_bytes: what
        it will take at least. Raises ModelError when the folder cannot be written or the disk is too full.
        """
        final = self.models / name
        if final.exists():
            return final
        try:
            self.models.mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(self.models / f".{name}.lock"):
                if not final.exists():
                    self._fill(final, write, num_bytes)
        except OSError as error:
            raise ModelError(self._explain(error)) from None
        return final

    def _fill(self, final: Path, write: Callable[[Path], None], num_bytes: int) -> None:
        partial = final.with_name(f".{final.name}.partial")
        _remove(partial)
        free = shutil.disk_usage(self.models).free
        if free < num_bytes:
            raise ModelError(
                f"{self.models}: {final.name} needs {num_bytes / 1e6:.0f} MB, {free / 1e6:.0f} MB are free: "
                "make room, or set LOPE_HOME to a folder on another disk"
            )
        try:
            write(partial)
            partial.rename(final)
        finally:
            _remove(partial)

    def _explain(self, error: OSError) -> str:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return f"{self.models}: the disk is full: make room, or set LOPE_HOME to a folder on another disk"
        where, reason = error.filename or self.models, error.strerror or error
        return f"{where}: cannot be written: {reason} (set LOPE_HOME to another folder)"


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
