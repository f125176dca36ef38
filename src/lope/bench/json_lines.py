"""Rows of a file of JSON lines, plain or gzipped, with the place of each for messages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lope.core import json_reader
from lope.core.errors import UsageError
from lope.core.text_file import text_lines


def text_of(path: Path) -> str:
    """The whole of a UTF-8 file, unpacked where it ends in .gz. Raises UsageError."""
    return "".join(text_lines(path))


def rows_of(path: Path, form: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(`file, line n`, object) of each line that is not empty. form: what a row looks like. Raises UsageError."""
    found = False
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json_reader.parsed(line)
        except ValueError as error:
            raise UsageError(f"{where}: is not JSON: {error} (a row is {form})") from None
        if not isinstance(row, dict):
            raise UsageError(f"{where}: is not an object (a row is {form})")
        found = True
        yield where, row
    if not found:
        raise UsageError(f"{path}: has no rows (a row is {form})")


def is_json_lines(path: Path) -> bool:
    """By its name: `.jsonl` or `.jsonl.gz`."""
    return path.name.removesuffix(".gz").endswith(".jsonl")
