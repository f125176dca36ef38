"""Every Python block in README and docs runs, page by page; every example runs; every verb they name is there."""

import re
import runpy
from pathlib import Path

import pytest

from lope.cli.main import VERBS

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text())]


@pytest.mark.model
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    code = "\n".join(BLOCK.findall(page.read_text()))
    exec(compile(code, str(page), "exec"), {"__name__": "__main__"})


@pytest.mark.model
@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs_and_says_something(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_verbs_that_a_page_names_exist(page: Path) -> None:
    named = set(re.findall(r"^(?:\s{4}|\|\s*`)lope ([a-z]+)", page.read_text(), re.MULTILINE))
    assert named <= VERBS.keys(), f"{page.name} names {named - VERBS.keys()}"


def test_a_page_that_names_a_missing_verb_is_found() -> None:
    named = set(re.findall(r"^(?:\s{4}|\|\s*`)lope ([a-z]+)", "    lope nosuchverb X\n", re.MULTILINE))
    assert not named <= VERBS.keys()
