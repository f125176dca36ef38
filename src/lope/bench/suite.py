"""A suite: prompts by category, read from JSON lines `{"id", "category", "turns": [text, ...]}`, plain or gzipped."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lope.bench.groups import group_of
from lope.bench.json_lines import rows_of
from lope.core import checks
from lope.core.errors import UsageError
from lope.core.text_file import is_text

MINI = Path(__file__).with_name("suites") / "mini.jsonl"
_FORM = '{"id": "...", "category": "...", "turns": ["...", ...]}'


@dataclass(frozen=True)
class Item:
    """One prompt, or a conversation of several user turns."""

    id: str
    category: str
    turns: tuple[str, ...]

    @property
    def group(self) -> str:
        """The group that its figures are counted in."""
        return group_of(self.category)


@dataclass(frozen=True)
class Suite:
    """Items in file order; ids are unique."""

    name: str
    items: tuple[Item, ...]

    @classmethod
    def read(cls, path: Path) -> "Suite":
        """Read a suite. Raises UsageError with file and line for the first row that is not one."""
        items: dict[str, Item] = {}
        for where, row in rows_of(path, _FORM):
            item = _item(row, where)
            if item.id in items:
                raise UsageError(f"{where}: the id {item.id!r} is there already")
            items[item.id] = item
        return cls(path.name, tuple(items.values()))

    @classmethod
    def mini(cls) -> "Suite":
        """The built-in suite: four prompts in each of Spec-Bench's six groups, written for lope."""
        return cls("mini", cls.read(MINI).items)

    def first_of_each(self, number: int) -> "Suite":
        """The first `number` items of every category."""
        checks.at_least("per_category", number, 1)
        seen: Counter[str] = Counter()
        chosen = []
        for item in self.items:
            seen[item.category] += 1
            if seen[item.category] <= number:
                chosen.append(item)
        return Suite(self.name, tuple(chosen))

    @property
    def sha256(self) -> str:
        """Changes when any id, category or turn does."""
        content = json.dumps([[item.id, item.category, *item.turns] for item in self.items])
        return hashlib.sha256(content.encode()).hexdigest()


def _item(row: Mapping[str, Any], where: str) -> Item:
    name, category, turns = row.get("id"), row.get("category"), row.get("turns")
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "" or not is_text(str(name)):
        raise UsageError(f"{where}: has no id (a row is {_FORM})")
    if not isinstance(category, str) or not category or not is_text(category):
        raise UsageError(f"{where}: has no category (a row is {_FORM})")
    if not isinstance(turns, list) or not turns:
        raise UsageError(f"{where}: has no turns (a row is {_FORM})")
    if not all(isinstance(turn, str) and turn.strip() for turn in turns):
        raise UsageError(f"{where}: every turn is a text that is not empty (a row is {_FORM})")
    return Item(str(name), category, tuple(turns))
