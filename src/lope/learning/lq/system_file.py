"""A system of the user's own: a JSON file with A, B, Q, R."""

from dataclasses import dataclass
from pathlib import Path

from lope.core import json_reader
from lope.core.errors import UsageError
from lope.learning.lq.system import LinearSystem

MOST_BYTES = 16_000_000  # a thousand states in text


@dataclass(frozen=True)
class SystemFile:
    """{"A": [n][n], "B": [n][m], "Q": [n][n], "R": [m][m]} and, if it is not 1, "noise"."""

    path: str

    def build(self) -> LinearSystem:
        """The system in the file. Raises UsageError that says what is wrong with it."""
        file = Path(self.path)
        if not file.is_file():
            raise UsageError(f"there is no file {self.path}")
        if file.stat().st_size > MOST_BYTES:
            raise UsageError(f"{self.path} is larger than {MOST_BYTES // 1_000_000} MB; build the system in Python")
        try:
            document = json_reader.parsed(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UsageError(f"{self.path} is not JSON: {error}") from None
        keys = set(document) if isinstance(document, dict) else set()
        if keys - {"noise"} != {"A", "B", "Q", "R"}:
            raise UsageError(f'{self.path} must hold "A", "B", "Q" and "R" (and may hold "noise")')
        noise = document.get("noise", 1.0)
        if not isinstance(noise, int | float):
            raise UsageError(f'{self.path}: "noise" must be a number, not {noise!r}')
        return LinearSystem(document["A"], document["B"], document["Q"], document["R"], float(noise))
