"""Files that are whole or as they were before, whoever dies or however full the disk is while they are written."""

import contextlib
import errno
import os
from pathlib import Path

from lope.core.errors import RunError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write beside the file, to the disk, then rename. Raises RunError, one clear line."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        why = "the disk is full" if error.errno in _FULL else error.strerror
        kept = "; what was finished before is kept" if path.exists() else ""
        raise RunError(f"{path}: cannot be written: {why}{kept}") from None
