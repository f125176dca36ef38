"""What one request asks for."""

import dataclasses
import numbers
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lope.core import checks
from lope.core.errors import SettingError
from lope.core.sampling import Sampling


@dataclass(frozen=True)
class RequestSettings:
    """Sampling and limits of one answer; names are those of Hugging Face `generate` where one exists.

    seed:           None draws one; the answer says which.
    stop_strings:   the answer ends before the first of these; its text never shows any part of it.
    ignore_stop:    go on past the model's own stop tokens (for measuring).
    logprobs:       return each token's log-probability under the target's unprocessed logits.
    """

    sampling: Sampling = field(default_factory=Sampling)
    max_new_tokens: int = 256
    seed: int | None = None
    stop_strings: tuple[str, ...] = ()
    ignore_stop: bool = False
    logprobs: bool = False

    def __post_init__(self) -> None:
        checks.at_least("max_new_tokens", self.max_new_tokens, 1)
        if self.seed is not None:
            checks.at_least("seed", self.seed, 0)
        for stop in self.stop_strings:
            if not isinstance(stop, str):
                raise SettingError(f"a stop string is text, not {stop!r}")
            if not stop:
                raise SettingError("a stop string must not be empty")

    @classmethod
    def from_names(cls, given: Mapping[str, Any]) -> "RequestSettings":
        """Sort keyword settings into sampling and limits. Raises SettingError that lists the right names."""
        kinds = typing.get_type_hints(Sampling) | typing.get_type_hints(cls)
        sampling = {f.name for f in dataclasses.fields(Sampling)}
        limits = {f.name for f in dataclasses.fields(cls)} - {"sampling"}
        unknown = sorted(given.keys() - sampling - limits)
        if unknown:
            raise SettingError(f"no setting {unknown[0]!r} (there are: {', '.join(sorted(sampling | limits))})")
        for name, value in given.items():
            _check_number(name, value, kinds[name])
        values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in given.items()}
        if isinstance(values.get("stop_strings"), str):
            values["stop_strings"] = (values["stop_strings"],)
        for_sampling: dict[str, Any] = {name: v for name, v in values.items() if name in sampling}
        for_limits: dict[str, Any] = {name: v for name, v in values.items() if name in limits}
        return cls(sampling=Sampling(**for_sampling), **for_limits)


def _check_number(name: str, value: object, kind: Any) -> None:
    """Refuse what is no number where one is wanted, and fractions where a whole one is."""
    kinds = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    wanted = "a whole number" if int in kinds else "a number" if float in kinds else None
    if wanted is None or (value is None and type(None) in kinds):
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Integral if int in kinds else numbers.Real):
        raise SettingError(f"{name} must be {wanted}, not {value!r}")
