"""`python -m lope`: Ctrl-C before there is a command line."""

import subprocess
import sys

import pytest

# a finder that is asked for what the command line imports, and is interrupted there
_INTERRUPTED = """
import sys
from lope.cli.entry import main

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
main()
"""


@pytest.mark.parametrize(("words", "printed"), [([], ""), (["list", "--json"], '{"error": "interrupted"}\n')])
def test_ctrl_c_while_it_is_imported_is_one_line(words: list[str], printed: str) -> None:
    ended = subprocess.run([sys.executable, "-c", _INTERRUPTED, *words], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, printed, "lope: interrupted\n")


def test_the_module_is_the_command_line() -> None:
    ended = subprocess.run([sys.executable, "-m", "lope", "--version"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert ended.stdout.strip()
