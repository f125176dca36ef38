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
from lope.models.lean.native.builder import BuildError, KernelBuilder
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
    assert str(why_not()) == f"no C++ compiler is there: CXX is {named!r}, and there is no such program"
    monkeypatch.setenv("LOPE_KERNELS", "native")
    with pytest.raises(SettingError, match="cannot be built here: no C"):
        library()


FAULTS = {
    # what the compiler does: (what is said of it, whether that is remembered)
    'echo "layer.cpp:1: error: planted" >&2; exit 1': ("error: planted", True),
    r"printf '\377\376 error\n' >&2; exit 1": (" error", True),
    'for last; do :; done; echo junk > "$last"': ("what it built cannot be loaded", True),
    'echo "fatal error: No space left on device" >&2; exit 1': ("No space left on device", False),
    "kill -9 $$": ("ended with -9", False),
}


@pytest.mark.parametrize("script", FAULTS)
def test_a_compiler_that_fails_is_one_line_and_is_asked_again_only_where_that_may_help(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], empty_home: Path
) -> None:
    told, remembered = FAULTS[script]
    monkeypatch.setenv("CXX", compiler(tmp_path / "broken", script))
    assert library(progress=True) is None
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "building kernels for this processor (once)"
    assert said[1].startswith("they cannot be built, torch's run instead:")
    assert told in said[1]
    assert len(said) == 2
    calls = (tmp_path / "broken.calls").read_text()
    monkeypatch.setattr(place, "_loaded", {})  # as another process would
    assert library() is None
    assert told in str(why_not())
    assert ((tmp_path / "broken.calls").read_text() == calls) == remembered
    assert [path.suffix for path in sorted(empty_home.iterdir())] == [".failed", ".lock"][not remembered :]


def test_what_a_killed_build_left_is_removed(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if why_not():
        pytest.skip(f"no native kernels here: {why_not()}")
    [built] = empty_home.glob("*.so")
    name = built.name.split("-")[0]
    built.unlink()
    left = empty_home / f".{name}.building"
    left.mkdir()
    (left / "layer.o").write_bytes(b"half")
    monkeypatch.setattr(place, "_loaded", {})
    assert library() is not None
    assert sorted(path.suffix for path in empty_home.iterdir()) == [".lock", ".so"]


def test_an_old_processor_runs_the_kernels_of_torch(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "DEFAULT")
    assert library() is None
    assert why_not() == "this processor has no AVX2"
    monkeypatch.setenv("LOPE_KERNELS", "native")
    with pytest.raises(SettingError, match="cannot be built here: this processor has no AVX2"):
        library()


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOPE_HOME", str(tmp_path / "file"))
    assert library() is None
    assert str(why_not()).startswith(f"{tmp_path / 'file' / 'kernels'}: ")


def test_kernels_are_built_once_and_a_damaged_file_is_built_again(
    empty_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        KernelBuilder.here(empty_home)
    except BuildError as error:
        pytest.skip(str(error))

    def asked(_: int) -> Library | None:
        return library(progress=True)

    with ThreadPoolExecutor(2) as threads:
        assert all(threads.map(asked, range(2)))
    [built] = empty_home.glob("*.so")
    assert capsys.readouterr().err.count("building kernels") == 1
    whole = built.read_bytes()
    code = "from lope.models.lean.native.library import library; print(library() is not None)"
    flipped = bytes([whole[0]]) + whole[1:-1] + bytes([whole[-1] ^ 1])
    # cut in its middle it would be mapped, and reading past its end is a signal that no process survives
    for damage in (b"", b"not a library", whole[: len(whole) // 2], flipped):
        built.unlink(missing_ok=True)  # not written over: it is mapped here
        built.write_bytes(damage)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "True\n"
        [again] = empty_home.glob("*.so")
        assert len(again.read_bytes()) == len(whole)
        built = again


def test_kernels_that_are_there_need_no_folder_that_can_be_written(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why_not():
        pytest.skip(f"no native kernels here: {why_not()}")
    monkeypatch.setattr(place, "_loaded", {})
    monkeypatch.setattr("filelock.FileLock.acquire", lambda *_, **__: pytest.fail("nothing is written"))
    assert library() is not None


def test_which_kernels_run(monkeypatch: pytest.MonkeyPatch, tiny_folder: Callable[..., Path]) -> None:
    monkeypatch.setenv("LOPE_KERNELS", "torch")
    assert kernels_for(torch.float32, torch.device("cpu")).name == "torch"
    assert load(str(tiny_folder("llama3")), dtype="float32").backend.kernels == "torch"
    monkeypatch.setenv("LOPE_KERNELS", "auto")
    assert kernels_for(torch.bfloat16, torch.device("cpu")).name == "torch", "they compute in float32"
