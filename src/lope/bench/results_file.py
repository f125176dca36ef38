"""`results.json`: settings, machine and every row, whole on the disk after each one. Schema: docs/benchmarks.md."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lope.bench.record import Row
from lope.core import json_reader
from lope.core.errors import UsageError
from lope.core.whole_file import write_whole

SCHEMA = 1
KIND = "lope bench speed"
NAME = "results.json"


class ResultsFile:
    """The rows of one run, by prompt and system: a row can be there once or not at all, whoever is killed when.

    head: everything but rows and sessions. Its `settings` decide whether a later run may go on with these rows.
    """

    def __init__(self, path: Path, head: Mapping[str, Any]) -> None:
        self.path = path
        self.head = dict(head)
        self.sessions: list[dict[str, Any]] = []
        self._rows: dict[tuple[str, str], Row] = {}

    @property
    def rows(self) -> tuple[Row, ...]:
        """All finished rows, in the order in which they were made."""
        return tuple(self._rows.values())

    def has(self, item: str, system: str) -> bool:
        """Whether this prompt was answered by this system."""
        return (item, system) in self._rows

    def take_over(self) -> int:
        """Go on with what the file holds; returns how many rows. Raises UsageError where it is another run's."""
        if not self.path.exists():
            return 0
        document = read_document(self.path)
        differs = difference(document["settings"], self.head["settings"])
        if differs:
            raise UsageError(f"{self.path} is of a run with other settings ({differs}): choose another --out")
        self.sessions = list(document["sessions"])
        for system in document["systems"]:
            self.join(system)
        self._rows = {row.key: row for row in map(Row.from_json, document["rows"])}
        return len(self._rows)

    def join(self, system: Mapping[str, Any]) -> None:
        """Name a system of the run; one that is named already stays as it is."""
        if system["name"] not in [known["name"] for known in self.head["systems"]]:
            self.head["systems"] = [*self.head["systems"], dict(system)]

    def add(self, row: Row) -> None:
        """Keep a finished row, on the disk too. Raises RunError when that cannot be; the file then stands as before."""
        assert row.key not in self._rows, "a prompt is answered once by each system"
        self._rows[row.key] = row
        self.save()

    def document(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "schema": SCHEMA,
            "kind": KIND,
            **self.head,
            "sessions": self.sessions,
            "rows": [row.to_json() for row in self.rows],
        }

    def save(self) -> None:
        """Write the file anew beside its place, and rename it into it."""
        text = json.dumps(self.document(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        write_whole(self.path, text.replace('{"id":', '\n{"id":') + "\n")


def read_document(path: Path) -> dict[str, Any]:
    """A results file as plain data. Raises UsageError for anything else, and for another schema."""
    try:
        document: Any = json_reader.parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path}: is not a results file: {error}") from None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise UsageError(f"{path}: is not a results file of {KIND}")
    if document.get("schema") != SCHEMA:
        raise UsageError(
            f"{path}: has schema {document.get('schema')!r}, this lope reads and writes {SCHEMA}: "
            "choose another --out, or read it with the version that wrote it"
        )
    try:
        _check(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{path}: is damaged ({type(error).__name__}: {error})") from None
    return document


def _check(document: Mapping[str, Any]) -> None:
    """Raise some error for what no run has written."""
    kinds = {"settings": dict, "sessions": list, "reference": str, "systems": list, "items": list, "rows": list}
    for part, kind in kinds.items():
        if not isinstance(document[part], kind):
            raise ValueError(f"{part} are no {kind.__name__}")
    if not all(isinstance(session["notes"], list) for session in document["sessions"]):
        raise ValueError("a session without notes")
    systems = {str(system["name"]) for system in document["systems"]}
    items = {str(item["id"]) for item in document["items"]}
    seen: set[tuple[str, str]] = set()
    for row in map(Row.from_json, document["rows"]):
        if row.key in seen or row.system not in systems or row.id not in items:
            raise ValueError(f"a row of {row.id} by {row.system}, which is there already or is not of this run")
        seen.add(row.key)


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first setting in which two runs differ, in words; empty where they are alike."""
    for name in dict.fromkeys([*before, *now]):
        if before.get(name) != now.get(name):
            return f"{name} was {_short(before.get(name))}, is {_short(now.get(name))}"
    return ""


def _short(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return str(value)
