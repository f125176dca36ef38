"""What a target said, on disk: token ids, its largest log-probabilities, and hidden states for feature drafters.

A folder of `manifest.json` and `shard-00000.safetensors`, `shard-00001.safetensors`, ...; a shard is whole or absent.
`training/shard.py` says what is in one.
"""

from collections.abc import Iterator
from collections.abc import Sequence as Many
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from lope.core import json_reader
from lope.core.claimed_folder import ClaimedFolder
from lope.core.errors import RunError, UsageError
from lope.core.whole_file import write_whole
from lope.training.manifest import Manifest
from lope.training.shard import Sequence, Shard, Text, packed

__all__ = ["DistilledSet", "Manifest", "Sequence"]

_MANIFEST = "manifest.json"


class DistilledSet:
    """A folder of shards; reading maps them into memory, writing appends whole shards.

    mended: what `begin` found half written or damaged and took out of the way, one line each.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self.mended: tuple[str, ...] = ()
        self._claim: ClaimedFolder | None = None

    @classmethod
    def open(cls, folder: Path) -> "DistilledSet":
        """An existing set, to read. Raises UsageError for a folder that is none."""
        path = folder / _MANIFEST
        try:
            row = json_reader.parsed(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UsageError(f"{folder}: is not a distilled set: it has no {_MANIFEST}") from None
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: is not the manifest of a distilled set: {error}") from None
        return cls(folder, Manifest.of(row, path))

    @classmethod
    def begin(cls, folder: Path, manifest: Manifest) -> "DistilledSet":
        """A set to write, held until `close`: a new one, or the one there if it is empty or has the same settings.

        Raises UsageError where it was begun with others or another process holds it, RunError where it cannot be made.
        """
        claim = ClaimedFolder(folder, (_MANIFEST,))
        try:
            begun = cls.open(folder) if (folder / _MANIFEST).exists() else None
            if begun is not None and begun.shards:
                _refuse_others(begun, manifest)
            if begun is None or begun.manifest.differing(manifest):
                begun = cls(folder, manifest)
                begun._write(_MANIFEST, manifest.text())
            place = begun
            place.mended = tuple(place._mend())
        except BaseException:
            claim.release()
            raise
        place._claim = claim
        return place

    def close(self) -> None:
        """Let others write it."""
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    @property
    def shards(self) -> list[Path]:
        """The whole shards, in order."""
        return sorted(self.folder.glob(f"shard-{'[0-9]' * 5}.safetensors"))

    def append(self, sequences: Many[Sequence]) -> None:
        """Write one more shard. Raises RunError where the disk is full; what was there stays whole."""
        last = max((int(path.stem.removeprefix("shard-")) for path in self.shards), default=-1)
        self._write(f"shard-{last + 1:05d}.safetensors", packed(sequences, self.manifest.vocab_size))

    def keep_top(self, top_k: int, outside: float, outside_tokens: int) -> None:
        """Set what was chosen by measuring: before the first shard is written."""
        assert not self.shards, "all shards of a set keep as many log-probabilities"
        manifest = replace(self.manifest, top_k=top_k, outside=outside, outside_tokens=outside_tokens)
        self._write(_MANIFEST, manifest.text())
        self.manifest = manifest

    def read(self) -> Iterator[Sequence]:
        """Every sequence. Raises UsageError for a damaged shard."""
        for shard in self._checked():
            for sequence in shard.sequences():
                self._refuse_unknown(shard, sequence.tokens, sequence.top_ids)
                yield sequence

    def texts(self) -> Iterator[Text]:
        """What was said, in order, without what the target thought of it. Raises UsageError for a damaged shard."""
        for shard in self._checked():
            for text in shard.texts():
                self._refuse_unknown(shard, text.tokens)
                yield text

    def numbers(self) -> set[int]:
        """The prompts that have been answered."""
        return {text.number for text in self.texts()}

    def sizes(self) -> tuple[int, int, int]:
        """(sequences, tokens, answer tokens)."""
        shards = list(self._checked())
        names = ("number", "tokens", "top_ids")
        sequences, tokens, answers = (sum(shard.rows(name) for shard in shards) for name in names)
        return sequences, tokens, answers

    def _checked(self) -> Iterator[Shard]:
        for path in self.shards:
            shard = Shard(path)
            try:
                shard.check()
            except UsageError as error:
                raise UsageError(f"{error}: the command that wrote the set sets it aside and does it again") from None
            yield shard

    def _refuse_unknown(self, shard: Shard, *ids: Tensor) -> None:
        """Raises UsageError where a shard names tokens that the target does not have: bits of it have flipped."""
        known = self.manifest.vocab_size
        if any(len(some) and not 0 <= int(some.min()) <= int(some.max()) < known for some in ids):
            raise UsageError(f"{shard.path}: is not a whole shard (it names tokens beyond the target's {known})")

    def _mend(self) -> Iterator[str]:
        """Remove what was half written and rename what is damaged: its prompts count as unanswered again."""
        for path in sorted(self.folder.glob(".*.partial")):
            path.unlink()
            yield f"{path.name}: was half written when a run ended, and is removed; its work is done again"
        for path in self.shards:
            try:
                Shard(path).check()
            except UsageError as error:
                path.replace(path.with_suffix(".damaged"))
                yield f"{error}: it is set aside as {path.stem}.damaged, and its work is done again"

    def _write(self, name: str, content: bytes) -> None:
        """Whole or not at all. Raises RunError."""
        try:
            write_whole(self.folder / name, content)
        except RunError as error:
            words = "the shards before it are whole, and the same command goes on from there"
            raise RunError(f"{error}; {words}") from None


def _refuse_others(place: DistilledSet, manifest: Manifest) -> None:
    differing = place.manifest.differing(manifest)
    if differing:
        raise UsageError(
            f"{place.folder}: was begun with another {', '.join(differing)}: go on with the same settings, or write to "
            "another folder"
        )
