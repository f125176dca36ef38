"""Systems that need no model: they answer at once, sleep, or fail where they are told to."""

import random
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.documents import made_row

from lope.bench.record import Turn
from lope.bench.results_file import ResultsFile
from lope.bench.suite import Item, Suite
from lope.bench.system import SystemFailedError


@dataclass
class StubSystem:
    name: str
    fails_at: str = ""
    asked: list[tuple[str, int]] = field(default_factory=list)
    closed: int = 0

    def answer(self, item: Item, max_new_tokens: int) -> tuple[Turn, ...]:
        self.asked.append((item.id, max_new_tokens))
        if item.id == self.fails_at:
            raise SystemFailedError("it died (signal SIGSEGV)")
        return made_row(item, self.name, random.Random(item.id), tokens=max_new_tokens).turns

    def peak_memory(self) -> int | None:
        return 1000

    def close(self) -> None:
        self.closed += 1


SUITE = Suite("six", Suite.mini().items[::4])


def stub_results(path: Path, **settings: object) -> ResultsFile:
    head = {
        "settings": {"max_new_tokens": 8, **settings},
        "reference": "plain",
        "plain": ["plain", "plain again"],
        "systems": [{"name": name, "kind": "ours", "how": name} for name in ("plain", "plain again", "ngram")],
        "items": [{"id": item.id, "category": item.category, "group": item.group} for item in SUITE.items],
        "calibration": [],
    }
    return ResultsFile(path, head)
