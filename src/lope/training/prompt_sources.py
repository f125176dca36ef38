"""What a target is asked when it teaches: prompts of a file, or prompts that the target writes itself."""

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lope.core.errors import ModelError, UsageError
from lope.core.prompt import Path as Ids
from lope.engine.prompting import prompt_ids
from lope.models.loaded import LoadedModel

_MARK = "@@lope@@"


class PromptSource(Protocol):
    """Numbered prompts: the same number is the same prompt, so that an interrupted run goes on where it was."""

    @property
    def name(self) -> str:
        """What the manifest calls it."""

    def opening(self, number: int, model: LoadedModel) -> tuple[Ids, bool]:
        """(ids to go on from, whether the target is to write the user's message first)."""


@dataclass(frozen=True)
class FilePrompts:
    """Prompts of a file, in an order shuffled by `seed`; after the last one they begin again."""

    path: Path
    prompts: tuple[str, ...]
    order: tuple[int, ...]

    @classmethod
    def read(cls, path: Path, seed: int) -> "FilePrompts":
        """Read JSON lines with a `prompt` (or `text`) each, gzipped or not, or plain lines. Raises UsageError."""
        prompts = tuple(dict.fromkeys(read_lines(path)))
        if not prompts:
            raise UsageError(f"{path}: holds no prompt")
        order = list(range(len(prompts)))
        random.Random(seed).shuffle(order)
        return cls(path, prompts, tuple(order))

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    def opening(self, number: int, model: LoadedModel) -> tuple[Ids, bool]:
        """The prompt inside the model's chat template."""
        text = self.prompts[self.order[number % len(self.order)]]
        return prompt_ids(model, text, system=None, raw=False), False


@dataclass(frozen=True)
class OwnPrompts:
    """The target is given only the header of a user's turn, and writes a message as a user would (Xu et al. 2024,
    arXiv:2406.08464): no data set is needed.
    """

    @property
    def name(self) -> str:
        """What the manifest calls it."""
        return "own"

    def opening(self, number: int, model: LoadedModel) -> tuple[Ids, bool]:
        """The template's text before the user's words."""
        if model.template is None:
            raise UsageError(
                f"{model.name} has no chat template, so it cannot write prompts of its own: give some with --prompts"
            )
        header, found, _ = model.template.render([{"role": "user", "content": _MARK}]).partition(_MARK)
        if not found:
            raise ModelError(f"the chat template of {model.name} does not show the user's words as they are")
        return model.tokenizer.encode(header), True


def read_lines(path: Path) -> Iterator[str]:
    """Texts of JSON lines with a `prompt` or `text` each (gzipped or not), or plain lines. Raises UsageError."""
    try:
        opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
        with opened as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _prompt(path, number, line)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _prompt(path: Path, number: int, line: str) -> str:
    if ".jsonl" not in path.suffixes:
        return line.strip()
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}: line {number} is not JSON: {error.msg}") from None
    text = (row.get("prompt") or row.get("text")) if isinstance(row, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"{path}: line {number} has no prompt")
    return text.strip()
