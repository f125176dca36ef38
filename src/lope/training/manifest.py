"""What every shard of a distilled set has in common: manifest.json."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lope.core.errors import UsageError
from lope.models.loaded import LoadedModel

FORMAT = 1
# `prompts` of a set that was not written but read begins so
READ = "text of "
# more characters than these tell nothing
_LONG = 60
# measured, not asked for
_MEASURED = ("outside", "outside_tokens")
# empty where who began the set did not say
_OPTIONAL = ("dtype", "prompts_sha256")
_LISTS = ("temperatures", "layers")


def _text(value: object) -> bool:
    return isinstance(value, str)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _size(value: object) -> bool:
    return _whole(value) and value >= 1  # type: ignore[operator]


def _count(value: object) -> bool:
    return _whole(value) and value >= 0  # type: ignore[operator]


def _each(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, tuple) and all(map(fits, value))


_FITTING: dict[str, Callable[[object], bool]] = {
    **dict.fromkeys(("target", "tokenizer", "prompts", "dtype", "prompts_sha256"), _text),
    **dict.fromkeys(("vocab_size", "hidden_size", "max_new_tokens"), _size),
    **dict.fromkeys(("top_k", "outside_tokens"), _count),
    "seed": _whole,
    "top_p": _number,
    "outside": lambda value: value is None or _number(value),
    "temperatures": _each(_number),
    "layers": _each(_count),
}


def changed(name: str, before: object, now: object) -> str:
    """In words, that a setting is not what it was; long values are left out."""
    values = f" ({before}, now {now})"
    return name.replace("_", "-") + (values if len(values) < _LONG else "")


@dataclass(frozen=True)
class Manifest:
    """target, tokenizer (fingerprint), vocab_size, hidden_size: who answered. dtype: of its passes.

    prompts, prompts_sha256:    where its prompts came from; the second only where a file gave them.
    temperatures, top_p, max_new_tokens, seed: how answers were drawn.
    top_k:                      log-probabilities kept for each answer token; 0: to be chosen by what is measured.
    outside, outside_tokens:    mean probability outside those top_k, over so many answer tokens of the set's beginning.
    layers:                     whose hidden states were kept, numbered as in transformers' `hidden_states`.
    """

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
    dtype: str = ""
    prompts_sha256: str = ""
    outside: float | None = None
    outside_tokens: int = 0

    @classmethod
    def begun(cls, model: LoadedModel, **settings: Any) -> "Manifest":
        """Of a set that this target begins. settings: the fields that it does not say itself."""
        backend = model.backend
        return cls(
            target=model.name,
            tokenizer=model.tokenizer.fingerprint,
            vocab_size=backend.vocab_size,
            hidden_size=backend.hidden_size,
            dtype=backend.dtype,
            **settings,
        )

    @classmethod
    def of(cls, row: Any, where: object) -> "Manifest":
        """From JSON. Raises UsageError, naming `where` it was read."""
        if not isinstance(row, dict) or "format" not in row:
            raise UsageError(f"{where}: is not the manifest of a distilled set")
        if row["format"] != FORMAT:
            raise UsageError(f"{where}: has format {row['format']}, this lope reads {FORMAT}")
        try:
            found = cls(**{**row, **{name: tuple(row[name]) for name in _LISTS}})
        except (KeyError, TypeError) as error:
            raise UsageError(f"{where}: is not the manifest of a distilled set: {error}") from None
        for name, fits in _FITTING.items():
            if not fits(getattr(found, name)):
                raise UsageError(f"{where}: is not the manifest of a distilled set: {name} is {row.get(name)!r}")
        if found.top_k > found.vocab_size:
            raise UsageError(f"{where}: keeps {found.top_k} of {found.vocab_size} probabilities")
        return found

    def check(self, model: LoadedModel, where: object) -> None:
        """Raise UsageError, naming `where` the set is, if its tokens are not those of a model."""
        if self.tokenizer != model.tokenizer.fingerprint:
            raise UsageError(f"{where}: was distilled with another tokenizer than that of {model.name}")
        if self.vocab_size != model.backend.vocab_size:
            raise UsageError(
                f"{where}: was distilled from {self.vocab_size} tokens, {model.name} has {model.backend.vocab_size}"
            )

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    def text(self) -> bytes:
        """As it stands on disk."""
        return (json.dumps(self.document(), indent=1) + "\n").encode()

    def differing(self, other: "Manifest") -> list[str]:
        """In which settings, in words, `other` wants something else; a top_k of 0 is content with any."""
        mine: Mapping[str, Any] = self.document()
        names = [name for name, value in other.document().items() if value != mine[name] and name not in _MEASURED]
        names = [name for name in names if name not in _OPTIONAL or (mine[name] and other.document()[name])]
        names = [name for name in names if not (name == "top_k" and other.top_k == 0)]
        return [changed(name, mine[name], other.document()[name]) for name in names]
