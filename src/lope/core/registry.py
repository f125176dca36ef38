"""Rooms: tables of parts by name, imported on first use, built from `name:setting=value,...`."""

import dataclasses
import difflib
import importlib
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lope.core import commas
from lope.core.errors import SettingError, UnknownPartError


@dataclass(frozen=True)
class Setting:
    """One setting of a part: its name, the type it takes and its default (`...` where it must be given)."""

    name: str
    type: str
    default: object


@dataclass(frozen=True)
class Room:
    """A table of parts: name -> `module:Class`, where the class is a frozen dataclass whose fields are the settings."""

    name: str
    table: Mapping[str, str]

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def part(self, name: str) -> type[Any]:
        """The class of a part. Raises UnknownPartError that lists the right names."""
        if name not in self.table:
            close = difflib.get_close_matches(name, self.table, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise UnknownPartError(f"no {self.name} part {name!r}{hint} (there are: {', '.join(self.table)})")
        module, _, attribute = self.table[name].partition(":")
        found: type[Any] = getattr(importlib.import_module(module), attribute)
        return found

    def settings(self, name: str) -> list[Setting]:
        """The settings of a part, in order."""
        part = self.part(name)
        hints = typing.get_type_hints(part)
        return [Setting(f.name, _type_name(hints[f.name]), _default(f)) for f in dataclasses.fields(part) if f.init]

    def make(self, text: str) -> Any:
        r"""Build a part from `name` or `name:setting=value,setting=value`. A comma within a value is written `\,`.

        Raises UnknownPartError or SettingError, each of which says what would be right.
        """
        name, _, rest = text.partition(":")
        part = self.part(name.strip())
        hints = typing.get_type_hints(part)
        known = [field.name for field in dataclasses.fields(part) if field.init]
        given: dict[str, object] = {}
        for item in filter(None, commas.divided(rest)):
            key, equals, value = item.partition("=")
            key = key.strip()
            if not equals or key not in known:
                takes = ", ".join(known) or "none"
                within = "" if equals or not given else _divided(next(reversed(given)), hints)
                raise SettingError(f"{name} has no setting {item!r} (it takes: {takes}{within})")
            if key in given:
                raise SettingError(f"{name}: {key} is given twice")
            given[key] = _parse(f"{name}: {key}", commas.read(value.strip()), hints[key])
        required = [f.name for f in dataclasses.fields(part) if f.init and _default(f) is ...]
        missing = [key for key in required if key not in given]
        if missing:
            raise SettingError(f"{name} needs {', '.join(missing)} (write {name}:{missing[0]}=...)")
        return part(**given)

    def spell(self, part: object) -> str:
        """The text from which `make` builds an equal part, naming only settings that differ from their defaults.

        A part that is not in the table is called by its class.
        """
        names = [key for key, path in self.table.items() if path.endswith(f":{type(part).__name__}")]
        if not names:
            return type(part).__name__
        name = names[0]
        fields = [f for f in dataclasses.fields(part) if f.init]  # type: ignore[arg-type]
        changed = [(f.name, getattr(part, f.name)) for f in fields if getattr(part, f.name) != _default(f)]
        return name + ("" if not changed else ":" + ",".join(f"{key}={written(value)}" for key, value in changed))


def _default(field: "dataclasses.Field[Any]") -> object:
    if field.default is not dataclasses.MISSING:
        return field.default
    return ... if field.default_factory is dataclasses.MISSING else field.default_factory()


def _type_name(hint: Any) -> str:
    return (
        hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint).replace("NoneType", "None")
    )


def _divided(key: str, hints: Mapping[str, Any]) -> str:
    """How a value is written of which the text behind a comma may have been a part."""
    if typing.get_origin(hints[key]) is tuple:
        return f"; values of {key} have - between them, as in 3-2-1"
    return r"; a comma within a value is written \,"


def written(value: object) -> str:
    """A value as `Room.make` reads it."""
    return commas.within("-".join(str(item) for item in value) if isinstance(value, tuple) else str(value))


def _parse(where: str, text: str, hint: Any) -> object:
    """Read one value as `hint`: bool, int, float, str, an optional one of these, or a tuple written `3-2-1`."""
    if isinstance(hint, types.UnionType):
        options = typing.get_args(hint)
        if type(None) in options and text.lower() == "none":
            return None
        return _parse(where, text, next(option for option in options if option is not type(None)))
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        if "," in text:
            raise SettingError(f"{where} takes values with - between them, as in 3-2-1, not {text!r}")
        return tuple(_parse(where, item, inner) for item in text.split("-"))
    if hint is bool:
        if text.lower() in ("true", "yes", "on", "1"):
            return True
        if text.lower() in ("false", "no", "off", "0"):
            return False
        raise SettingError(f"{where} is true or false, not {text!r}")
    try:
        return hint(text)
    except ValueError:
        raise SettingError(f"{where} takes {hint.__name__}, not {text!r}") from None
