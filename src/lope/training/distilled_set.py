"""What a target said, on disk: token ids, its largest log-probabilities, and hidden states for feature drafters.

A folder of `manifest.json` and `shard-00000.safetensors`, `shard-00001.safetensors`, ...; a shard is whole or absent.
n tokens, m sequences, k log-probabilities, L layers, d hidden size of the target:

    number       int64 [m]          which prompt a sequence answers (with the manifest's seed: where it came from)
    temperature  float32 [m]        what its answer was drawn at
    starts       int64 [m + 1]      sequence s is tokens[starts[s] : starts[s + 1]]
    answers      int64 [m]          how many tokens of it, from its start, are prompt: the answer begins there
    tokens       uint16/int32 [n]
    top_ids      uint16/int32 [a, k]  for each answer token, in order: the target's k most probable tokens there ...
    top_logprobs float16 [a, k]     ... and their log-probabilities at temperature 1
    features     bfloat16 [n, L·d]  hidden states after the manifest's layers; absent where they were not kept
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import safetensors
import torch
from safetensors.torch import save_file
from torch import Tensor

from lope.core.errors import RunError, UsageError

FORMAT = 1
_SHARD = "shard-{:05d}.safetensors"


@dataclass(frozen=True)
class Manifest:
    """What every shard of a set has in common."""

    target: str
    tokenizer: str
    vocab_size: int
    hidden_size: int
    prompts: str
    temperatures: tuple[float, ...]
    top_p: float
    top_k: int
    layers: tuple[int, ...]
    max_new_tokens: int
    seed: int
    format: int = FORMAT


@dataclass(frozen=True, eq=False)
class Sequence:
    """One conversation. tokens int64 [n]; top_ids, top_logprobs [answer tokens, k]; features [n, L·d] or None."""

    number: int
    temperature: float
    prompt: int
    tokens: Tensor
    top_ids: Tensor
    top_logprobs: Tensor
    features: Tensor | None


class DistilledSet:
    """A folder of shards; reading maps them into memory, writing appends whole shards."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @classmethod
    def open(cls, folder: Path) -> "DistilledSet":
        """An existing set. Raises UsageError for a folder that is none."""
        path = folder / "manifest.json"
        try:
            row = json.loads(path.read_text(encoding="utf-8"))
            if row["format"] != FORMAT:
                raise UsageError(f"{path}: has format {row['format']}, this lope reads {FORMAT}")
            lists = {name: tuple(row[name]) for name in ("temperatures", "layers")}
            return cls(folder, Manifest(**{**row, **lists}))
        except FileNotFoundError:
            raise UsageError(f"{folder}: is not a distilled set: it has no manifest.json") from None
        except (OSError, json.JSONDecodeError, KeyError, TypeError) as error:
            raise UsageError(f"{path}: is not the manifest of a distilled set: {error}") from None

    @classmethod
    def begin(cls, folder: Path, manifest: Manifest) -> "DistilledSet":
        """A new set, or the one there if it was begun with the same manifest. Raises UsageError where it was not."""
        if (folder / "manifest.json").exists():
            found = cls.open(folder)
            differing = [k for k, v in asdict(manifest).items() if getattr(found.manifest, k) != v]
            if differing:
                raise UsageError(
                    f"{folder}: was begun with another {', '.join(differing)}: go on with the same settings, "
                    "or write to another folder"
                )
            return found
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _write_whole(folder / "manifest.json", json.dumps(asdict(manifest), indent=1).encode())
        except OSError as error:
            raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None
        return cls(folder, manifest)

    @property
    def shards(self) -> list[Path]:
        """The whole shards, in order."""
        return sorted(self.folder.glob("shard-?????.safetensors"))

    def append(self, sequences: list[Sequence]) -> None:
        """Write one more shard. Raises RunError where the disk is full; what was there stays whole."""
        path = self.folder / _SHARD.format(len(self.shards))
        partial = path.with_suffix(".partial")
        try:
            save_file(_packed(sequences, self.manifest), partial)
            partial.replace(path)
        except (OSError, safetensors.SafetensorError) as error:
            partial.unlink(missing_ok=True)
            raise RunError(f"{path}: cannot be written ({error}); the shards before it are whole") from None

    def read(self) -> Iterator[Sequence]:
        """Every sequence; tensors are read from the mapped file. Raises UsageError for a damaged shard."""
        for path in self.shards:
            yield from Shard(path).sequences()

    def numbers(self) -> set[int]:
        """The prompts that have been answered."""
        return {int(number) for path in self.shards for number in Shard(path).file.get_tensor("number")}

    def sizes(self) -> tuple[int, int, int]:
        """(sequences, tokens, answer tokens)."""
        shards = [Shard(path) for path in self.shards]
        return (
            sum(shard.rows("number") for shard in shards),
            sum(shard.rows("tokens") for shard in shards),
            sum(shard.rows("top_ids") for shard in shards),
        )


@dataclass(frozen=True)
class Shard:
    """One file of a set."""

    path: Path

    @cached_property
    def file(self) -> "safetensors.safe_open":
        """The mapped file."""
        try:
            return safetensors.safe_open(self.path, framework="pt")
        except (OSError, safetensors.SafetensorError) as error:
            raise UsageError(f"{self.path}: is not a whole shard ({error}); remove it to go on without it") from None

    def rows(self, name: str) -> int:
        """How many rows a tensor has."""
        return int(self.file.get_slice(name).get_shape()[0])

    def sequences(self) -> Iterator[Sequence]:
        """The sequences of the shard."""
        held = {name: self.file.get_tensor(name) for name in self.file.keys()}  # noqa: SIM118 - not a dict
        starts, answers = held["starts"].tolist(), held["answers"].tolist()
        answer = 0
        for s, (first, last) in enumerate(zip(starts, starts[1:], strict=False)):
            count = last - first - answers[s]
            top = slice(answer, answer + count)
            answer += count
            yield Sequence(
                number=int(held["number"][s]),
                temperature=float(held["temperature"][s]),
                prompt=answers[s],
                tokens=held["tokens"][first:last].to(torch.int64),
                top_ids=held["top_ids"][top].to(torch.int64),
                top_logprobs=held["top_logprobs"][top],
                features=held["features"][first:last] if "features" in held else None,
            )


def _packed(sequences: list[Sequence], manifest: Manifest) -> dict[str, Tensor]:
    narrow = torch.uint16 if manifest.vocab_size <= 1 << 16 else torch.int32
    lengths = torch.tensor([0, *(len(sequence.tokens) for sequence in sequences)])
    tensors = {
        "number": torch.tensor([sequence.number for sequence in sequences]),
        "temperature": torch.tensor([sequence.temperature for sequence in sequences]),
        "starts": lengths.cumsum(0),
        "answers": torch.tensor([sequence.prompt for sequence in sequences]),
        "tokens": torch.cat([sequence.tokens for sequence in sequences]).to(narrow),
        "top_ids": torch.cat([sequence.top_ids for sequence in sequences]).to(narrow),
        "top_logprobs": torch.cat([sequence.top_logprobs for sequence in sequences]).to(torch.float16),
    }
    features = [sequence.features for sequence in sequences if sequence.features is not None]
    if features:
        assert len(features) == len(sequences), "features of all sequences, or of none"
        tensors["features"] = torch.cat(features).to(torch.bfloat16)
    return tensors


def _write_whole(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
