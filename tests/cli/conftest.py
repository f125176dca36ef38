"""The command line, called in this process, with a cache folder of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.calling import Caller
from tests.homes import fresh_home


@pytest.fixture
def lope(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Caller:
    monkeypatch.setenv("LOPE_HOME", fresh_home(tmp_path_factory.mktemp("home")))
    return Caller(capsys, monkeypatch)


@pytest.fixture
def tiny(tiny_folder: Callable[..., Path]) -> tuple[str, ...]:
    """Options that name a tiny model."""
    return ("--model", str(tiny_folder("llama3")), "--dtype", "float32")
