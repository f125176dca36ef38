"""What a target is asked when it teaches: prompts of a file, or prompts that the target writes itself."""

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lope.core import json_reader
from lope.core.errors import ModelError, UsageError
from lope.core.prompt import Path as Ids
from lope.core.text_file import is_text, text_lines
from lope.engine.prompting import prompt_ids
from lope.models.loaded import LoadedModel

_MARK = "@@lope@@"


class PromptSource(Protocol):
    """Numbered prompts: the same number is the same prompt, so that an interrupted run goes on where it was."""

    @property
    def name(self) -> str:
        """What the manifest calls it."""

    @property
    def sha256(self) -> str:
        """Of the prompts; empty where they are not known beforehand."""

    @property
    def count(self) -> int | None:
        """How many prompts there are, after which they come again; None: no end, and none is to come twice."""

    def opening(self, number: int, model: LoadedModel) -> tuple[Ids, bool]:
        """(ids to go on from, whether the target is to write the user's message first).

        Raises UsageError or ModelError where the model cannot be asked.
        """


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

    @property
    def sha256(self) -> str:
        """Of the prompts, in the file's order."""
        return hashlib.sha256("\0".join(self.prompts).encode()).hexdigest()

    @property
    def count(self) -> int | None:
        """How many different prompts the file has."""
        return len(self.prompts)

    def opening(self, number: int, model: LoadedModel) -> tuple[Ids, bool]:
        """The prompt inside the model's chat template; as it stands where the model has none."""
        text = self.prompts[self.order[number % len(self.order)]]
        return prompt_ids(model, text, system=None, raw=model.template is None), False


@dataclass(frozen=True)
class OwnPrompts:
    """The target is given only the header of a user's turn, and writes a message as a user would (Xu et al. 2024,
    arXiv:2406.08464): no data set is needed.
    """

    @property
    def name(self) -> str:
        """What the manifest calls it."""
        return "own"

    @property
    def sha256(self) -> str:
        """Not known beforehand."""
        return ""

    @property
    def count(self) -> int | None:
        """As many as are asked for."""
        return None

    def opening(self, number: int, model: LoadedModel) -> tuple[Ids, bool]:
        """The template's text before the user's words."""
        if model.template is None:
            raise UsageError(
                f"{model.name} has no chat template, so it cannot write prompts of its own: give some with --prompts"
            )
        header, found, _ = model.template.render([{"role": "user", "content": _MARK}]).partition(_MARK)
        if not found:
            raise ModelError(f"the chat template of {model.name} does not show the user's words as they are")
        ids = model.tokenizer.encode(header)
        if not ids:
            raise ModelError(f"the chat template of {model.name} has nothing before the user's words to go on from")
        return ids, True


def read_lines(path: Path) -> Iterator[str]:
    """Texts of JSON lines with a `prompt` or `text` each (gzipped or not), or plain lines. Raises UsageError."""
    for number, line in enumerate(text_lines(path), start=1):
        if line.strip():
            yield _prompt(path, number, line)


def _prompt(path: Path, number: int, line: str) -> str:
    if ".jsonl" not in path.suffixes:
        return line.strip()
    try:
        row = json_reader.parsed(line)
    except ValueError as error:
        raise UsageError(f"{path}: line {number} is not JSON: {error}") from None
    text = (row.get("prompt") or row.get("text")) if isinstance(row, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"{path}: line {number} has no prompt")
    if not is_text(text):
        raise UsageError(f"{path}: line {number} holds half a surrogate pair, which no tokenizer can read")
    return text.strip()
