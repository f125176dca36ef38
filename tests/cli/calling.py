"""Call the command line in this process; what it printed and how it ended."""

import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from lope.cli.main import main


@dataclass(frozen=True)
class Called:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout: more, or anything beside it, is an error."""
        assert self.out.endswith("\n")
        assert self.out.count("\n") == 1
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def complaint(self) -> str:
        """The one clear line on stderr."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("lope: ")
        return lines[0].removeprefix("lope: ")


class Caller:
    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Called:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        self._capsys.readouterr()
        try:
            main(arguments)
            code: Any = 0
        except SystemExit as end:
            code = end.code or 0
        printed = self._capsys.readouterr()
        return Called(code, printed.out, printed.err)
