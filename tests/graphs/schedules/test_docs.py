"""The page on scheduling names every scheduler and no other (`tests/docs` runs its snippets)."""

import re
from pathlib import Path

from lope.graphs import SCHEDULERS

PAGE = (Path(__file__).parents[3] / "docs" / "scheduling.md").read_text(encoding="utf-8")


def test_the_page_names_every_scheduler() -> None:
    table = PAGE.split("## Schedulers")[1].split("Two **decoders**")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == sorted(SCHEDULERS)
