"""One JSON line for each step of a training; a resumed training goes on behind the last step that counts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lope.core import json_reader
from lope.core.errors import RunError, UsageError

LOG = "log.jsonl"
_BEGINNING = '{"step": '


class TrainingLog:
    """`log.jsonl` in a training's folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOG

    def claim(self) -> None:
        """Make it where there is none: it marks the folder as a training's.

        Raises UsageError for a file that is no log of a training, RunError where it cannot be written.
        """
        self._claimed()

    def begin(self, step: int) -> None:
        """Claim it, and drop what was written of later steps: they will be made again."""
        lines = self._claimed()
        kept = [line for line in lines if _step(line) <= step]
        if len(kept) < len(lines):
            try:
                self._path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
            except OSError as error:
                raise self._unwritable(error) from None

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a line. Raises RunError."""
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({name: value for name, value in row.items() if value is not None}) + "\n")
        except OSError as error:
            raise self._unwritable(error) from None

    def _claimed(self) -> list[str]:
        """Its lines."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise self._unwritable(error) from None
        if not all(line.startswith(_BEGINNING) for line in lines[:-1]) or not _may_be_ours(lines):
            raise UsageError(f"{self._path}: is not the log of a training: choose another folder")
        return lines

    def _unwritable(self, error: OSError) -> RunError:
        return RunError(f"{self._path}: cannot be written: {error.strerror or error}")


def _may_be_ours(lines: list[str]) -> bool:
    """A last line may have been cut off anywhere; where it is the only one, as much as there is must be as ours."""
    return len(lines) != 1 or lines[0][: len(_BEGINNING)] == _BEGINNING[: len(lines[0])]


def _step(line: str) -> float:
    """A line that was cut off belongs to no step that counts."""
    try:
        return int(json_reader.parsed(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
