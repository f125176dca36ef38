"""Lines of a UTF-8 file, plain or gzipped; whatever cannot be read is said in one line."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from lope.core.errors import UsageError


def text_lines(path: Path) -> Iterator[str]:
    """Each line with its end, as it is; unpacked where the name ends in .gz. Raises UsageError."""
    try:
        opened: Callable[..., IO[str]] = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", newline="") as file:
            yield from file
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not valid UTF-8 (byte {error.start})") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path}: cannot be read: {reason}") from None


def is_text(text: str) -> bool:
    """Whether it can be encoded: half a surrogate pair, which JSON can say, cannot."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
