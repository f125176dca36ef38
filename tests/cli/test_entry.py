"""`python -m lope`: Ctrl-C before there is a command line, and while torch is imported."""

import subprocess
import sys

import pytest

# a finder that is asked for a module, and interrupted there
_INTERRUPTED = """
import os, signal, sys
from lope.cli.entry import main

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == where:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

where = sys.argv.pop(1)
sys.meta_path.insert(0, Interrupting())
main()
"""


def _ended(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", ["typer", "lope.cli.run", "torch", "torch._C", "numpy", "numpy.exceptions"])
@pytest.mark.parametrize(("words", "printed"), [([], ""), (["--json"], '{"error": "interrupted"}\n')])
def test_ctrl_c_while_something_is_imported_is_one_line(module: str, words: list[str], printed: str) -> None:
    ended = _ended("-c", _INTERRUPTED, module, "run", "hi", "--model", "nowhere", *words)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, printed, "lope: interrupted\n")


def test_ctrl_c_that_was_switched_off_stays_so() -> None:
    ended = _ended(
        "-c", "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + _INTERRUPTED, "typer", "--version"
    )
    assert ended.returncode == 0


def test_the_module_is_the_command_line() -> None:
    ended = _ended("-m", "lope", "--version")
    assert ended.returncode == 0
    assert ended.stdout.strip()
