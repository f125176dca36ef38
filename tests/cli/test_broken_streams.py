"""What stdin and stdout can be besides a terminal: full, closed, or with lines of blanks between the turns."""

import io
import subprocess
import sys

import pytest

from lope.cli import chat

LOPE = [sys.executable, "-m", "lope"]


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
def test_a_full_disk_behind_stdout_gets_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*LOPE, "list", "verifiers", "--json"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("lope: the output cannot be written")
    assert done.stderr.count("\n") == 1


def test_a_closed_stdin_gets_one_line() -> None:
    done = subprocess.run(["bash", "-c", f"{sys.executable} -m lope run - <&-"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "lope: stdin is closed: there is no prompt to read\n"


def test_lines_of_blanks_are_no_turns_and_an_empty_one_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\n   \ntwo\n\nthree\n"))
    assert [chat._ask(silent=True) for _ in range(3)] == ["one", "two", ""]
