"""The token ids of a distilled set in one small file: what cannot be computed again without drawing it again.

An .xz file (LZMA, checked by CRC64) of, little-endian:

    "lope tokens 1\\n", uint32 [1] bytes of the header, the header: JSON {"manifest", "sequences", "tokens"}
    numbers uint32 [m], prompts uint32 [m], lengths uint32 [m], temperatures float32 [m], tokens uint16 or uint32 [n]

for m sequences, ascending by number, of n tokens in all; `prompts` says how many tokens of each are prompt.
"""

import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray

from lope.core import json_reader
from lope.core.errors import UsageError
from lope.core.whole_file import write_whole
from lope.models.loaded import LoadedModel
from lope.training.distilled_set import DistilledSet
from lope.training.manifest import Manifest
from lope.training.shard import Text

_MAGIC = b"lope tokens 1\n"
_LONGEST_HEADER = 1 << 16
# tokens are two bytes: lp and pb of 1 tell LZMA so. A dictionary of 16 MB sees the whole of most sets
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 24, "lp": 1, "pb": 1}]


@dataclass(frozen=True, eq=False)
class TokenArchive:
    """Tokens of a set, and how the set was made."""

    manifest: Manifest
    texts: tuple[Text, ...]

    @classmethod
    def of(cls, place: DistilledSet) -> "TokenArchive":
        """The tokens of a set. Raises UsageError where it has none, or a damaged shard."""
        texts = tuple(sorted(place.texts(), key=lambda text: text.number))
        if not texts:
            raise UsageError(f"{place.folder}: holds no sequence yet")
        return cls(place.manifest, texts)

    @classmethod
    def read(cls, path: Path) -> "TokenArchive":
        """Raises UsageError for a file that is none, is cut short or is damaged."""
        try:
            with lzma.open(path) as file:
                return cls._read(path, file)
        except (lzma.LZMAError, EOFError, OSError, OverflowError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or str(error) or "it says that it holds more than can be"
            raise UsageError(f"{path}: is not a whole archive of tokens: {reason}") from None

    @property
    def answer_tokens(self) -> int:
        """How many tokens are the target's answers."""
        return sum(len(text.tokens) - text.prompt for text in self.texts)

    def check(self, model: LoadedModel) -> None:
        """Raises UsageError where a model does not read these tokens, or not so many of them."""
        if self.manifest.tokenizer != model.tokenizer.fingerprint:
            raise UsageError(
                f"the archive's tokens are those of {self.manifest.target}; {model.name} has another tokenizer"
            )
        if self.manifest.vocab_size != model.backend.vocab_size:
            raise UsageError(
                f"the archive's target knows {self.manifest.vocab_size} tokens, not {model.backend.vocab_size} as "
                f"{model.name} does"
            )
        longest = max(len(text.tokens) for text in self.texts)
        if longest > model.backend.context:
            raise UsageError(
                f"the archive has {longest} tokens in one sequence, and the context of {model.name} holds "
                f"{model.backend.context}"
            )

    def write(self, path: Path) -> None:
        """Into one file, whole or not at all. Raises RunError where it cannot be written."""
        content = lzma.compress(b"".join(self._parts()), format=lzma.FORMAT_XZ, filters=_FILTERS)
        write_whole(path, content)

    def _parts(self) -> Iterator[bytes]:
        tokens = torch.cat([text.tokens for text in self.texts]).numpy()
        header = {"manifest": self.manifest.document(), "sequences": len(self.texts), "tokens": len(tokens)}
        written = json.dumps(header).encode()
        yield _MAGIC + np.array([len(written)], "<u4").tobytes() + written
        for column in (
            [text.number for text in self.texts],
            [text.prompt for text in self.texts],
            [len(text.tokens) for text in self.texts],
        ):
            yield np.array(column, "<u4").tobytes()
        yield np.array([text.temperature for text in self.texts], "<f4").tobytes()
        yield tokens.astype(_token_type(self.manifest)).tobytes()

    @classmethod
    def _read(cls, path: Path, file: BinaryIO | lzma.LZMAFile) -> "TokenArchive":
        if file.read(len(_MAGIC)) != _MAGIC:
            raise UsageError(f"{path}: is not an archive of tokens that this lope reads")
        header = _header(path, file)
        manifest, count = Manifest.of(header["manifest"], path), header["sequences"]
        numbers, prompts, lengths = (_column(file, "<u4", count) for _ in range(3))
        temperatures = _column(file, "<f4", count)
        if int(lengths.sum()) != header["tokens"] or not ((prompts >= 1) & (prompts < lengths)).all():
            raise UsageError(f"{path}: its lengths do not fit its tokens")
        tokens = _column(file, _token_type(manifest), header["tokens"])
        if file.read(1) or int(tokens.max(initial=0)) >= manifest.vocab_size:
            raise UsageError(f"{path}: holds other tokens than it says")
        parts = np.split(tokens.astype(np.int64), lengths.cumsum()[:-1])
        rows = zip(numbers.tolist(), temperatures.tolist(), prompts.tolist(), map(torch.from_numpy, parts), strict=True)
        return cls(manifest, tuple(Text(*row) for row in rows))


def _token_type(manifest: Manifest) -> str:
    return "<u2" if manifest.vocab_size <= 1 << 16 else "<u4"


def _header(path: Path, file: BinaryIO | lzma.LZMAFile) -> dict[str, Any]:
    length = int(_column(file, "<u4", 1)[0])
    try:
        header = json_reader.parsed(file.read(min(length, _LONGEST_HEADER)))
        counts = [header[name] for name in ("sequences", "tokens")]
        if all(isinstance(count, int) and count > 0 for count in counts) and "manifest" in header:
            return dict(header)
    except (ValueError, KeyError, TypeError):
        pass
    raise UsageError(f"{path}: its header cannot be read")


def _column(file: BinaryIO | lzma.LZMAFile, kind: str, count: int) -> NDArray[Any]:
    """`count` numbers; raises EOFError where the file has fewer."""
    size = count * np.dtype(kind).itemsize
    content = file.read(size)
    if len(content) != size:
        raise EOFError("it ends too early")
    return np.frombuffer(content, kind)
