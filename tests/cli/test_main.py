"""`lope` itself: verbs, version, exit codes; nothing heavy is loaded before it is needed."""

import subprocess
import sys

import pytest
from tests.cli.calling import Caller

from lope.cli.main import VERBS
from lope.version import __version__


def test_the_version_and_the_help_are_printed(lope: Caller) -> None:
    assert lope("--version").out == f"{__version__}\n"
    called = lope("--help")
    assert called.code == 0
    assert all(verb in called.out for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str, lope: Caller) -> None:
    called = lope(verb, "--help")
    assert called.code == 0
    assert "Usage" in called.out


@pytest.mark.parametrize(
    "arguments",
    [("sing",), ("run",), ("run", "hi", "--top-k", "many"), ("run", "hi", "--no-such-option"), ("list", "a", "b")],
    ids=" ".join,
)
def test_bad_usage_is_exit_code_2(arguments: tuple[str, ...], lope: Caller) -> None:
    called = lope(*arguments)
    assert called.code == 2
    assert called.out == ""
    assert called.err
    as_json = lope(*arguments, "--json")
    assert as_json.code == 2
    assert as_json.document["error"]


def test_help_loads_neither_torch_nor_transformers() -> None:
    code = (
        "import sys\nfrom lope.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "assert not {'torch', 'transformers', 'tokenizers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_import_lope_loads_neither_torch_nor_any_peer() -> None:
    code = "import lope, sys\nassert not {'torch', 'transformers', 'vllm', 'llama_cpp'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("arguments", ["--help", "list shapes --json"])
def test_a_pipe_that_is_closed_early_is_no_traceback(arguments: str) -> None:
    command = f"{sys.executable} -c 'from lope.cli.main import main; main()' {arguments} | (exec 0<&-)"
    done = subprocess.run(["bash", "-c", command + "; exit ${PIPESTATUS[0]}"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
