"""Building the kernels: once, whoever competes; one line where they cannot be had."""

import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from lope.core.errors import SettingError
from lope.models.lean.kernels import kernels_for
from lope.models.lean.native import library as place
from lope.models.lean.native.library import Library, library, why_not
from lope.models.loading import load


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder without kernels."""
    monkeypatch.setenv("LOPE_HOME", str(tmp_path / "empty"))
    monkeypatch.delenv("LOPE_KERNELS", raising=False)
    return tmp_path / "empty" / "kernels"


def compiler(path: Path, script: str) -> str:
    """A compiler that runs a shell script; calls are noted beside it."""
    path.write_text(f'#!/bin/sh\necho "$@" >> {path}.calls\n{script}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_choice_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOPE_KERNELS", "fast")
    with pytest.raises(SettingError, match="LOPE_KERNELS must be auto, native, torch, not 'fast'"):
        library()
    monkeypatch.setenv("LOPE_KERNELS", "torch")
    assert library() is None
    assert why_not() == "LOPE_KERNELS is torch"


@pytest.mark.parametrize("named", ["no-such-compiler", "'g++"])
def test_without_a_compiler_torch_runs(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", named)
    assert library() is None
    assert "no C++ compiler" in str(why_not())
    monkeypatch.setenv("LOPE_KERNELS", "native")
    with pytest.raises(SettingError, match="cannot be built here: no C"):
        library()


def test_a_compiler_that_fails_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], empty_home: Path
) -> None:
    script = 'case "$*" in *--version*) echo 1;; *) echo "layer.cpp:1: error: planted" >&2; exit 1;; esac'
    monkeypatch.setenv("CXX", compiler(tmp_path / "broken", script))
    assert library(progress=True) is None
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "building kernels for this processor (once)"
    assert said[1].startswith("they cannot be built, torch's run instead:")
    assert said[1].endswith("error: planted")
    monkeypatch.setattr(place, "_loaded", {})  # as another process would
    assert library(progress=True) is None
    assert capsys.readouterr().err == ""
    calls = (tmp_path / "broken.calls").read_text().splitlines()
    assert sum("--version" not in call for call in calls) == 1
    assert not [path for path in empty_home.iterdir() if path.suffix in (".o", ".partial", ".so")]


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOPE_HOME", str(tmp_path / "file"))
    assert library() is None
    assert str(why_not()).startswith(f"{tmp_path / 'file' / 'kernels'}: ")


def test_kernels_are_built_once_and_a_damaged_file_is_built_again(
    empty_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if place._compiler() is None:
        pytest.skip("no C++ compiler here")

    def asked(_: int) -> Library | None:
        return library(progress=True)

    with ThreadPoolExecutor(2) as threads:
        assert all(threads.map(asked, range(2)))
    [built] = empty_home.glob("*.so")
    assert capsys.readouterr().err.count("building kernels") == 1
    built.unlink()  # not written over: it is mapped here
    built.write_bytes(b"not a library")
    code = "from lope.models.lean.native.library import library; print(library() is not None)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "True\n"
    assert built.stat().st_size > 10_000


def test_which_kernels_run(monkeypatch: pytest.MonkeyPatch, tiny_folder: Callable[..., Path]) -> None:
    monkeypatch.setenv("LOPE_KERNELS", "torch")
    assert kernels_for(torch.float32, torch.device("cpu")).name == "torch"
    assert load(str(tiny_folder("llama3")), dtype="float32").backend.kernels == "torch"
    monkeypatch.setenv("LOPE_KERNELS", "auto")
    assert kernels_for(torch.bfloat16, torch.device("cpu")).name == "torch", "they compute in float32"
