"""One JSON line for each step of a training; a resumed training goes on behind the last step that counts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lope.core.errors import RunError

LOG = "log.jsonl"


class TrainingLog:
    """`log.jsonl` in a training's folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOG

    def begin(self, step: int) -> None:
        """Drop what was written of later steps: they will be made again. Raises RunError."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines() if self._path.exists() else []
            kept = [line for line in lines if _step(line) <= step]
            if len(kept) < len(lines):
                self._path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        except OSError as error:
            raise RunError(f"{self._path}: cannot be written: {error.strerror or error}") from None

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a line. Raises RunError."""
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({name: value for name, value in row.items() if value is not None}) + "\n")
        except OSError as error:
            raise RunError(f"{self._path}: cannot be written: {error.strerror or error}") from None


def _step(line: str) -> float:
    """A line that was cut off belongs to no step that counts."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
