"""Lines of a UTF-8 file, plain or gzipped; whatever cannot be read is said in one line."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from lope.core.errors import UsageError


def text_lines(path: Path) -> Iterator[str]:
    """Each line with its end, as it is; unpacked where the name ends in .gz. Raises UsageError."""
    try:
        packed = path.suffix == ".gz"
        with (
            gzip.open(path, "rt", encoding="utf-8", newline="")
            if packed
            else path.open(encoding="utf-8", newline="") as file
        ):
            yield from file
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not valid UTF-8 (byte {error.start})") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path}: cannot be read: {reason}") from None
