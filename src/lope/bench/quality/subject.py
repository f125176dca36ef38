"""What is judged: a configuration with its own model, dtype or exactness, as on the command line."""

import dataclasses
from dataclasses import dataclass

from lope.bench.configuration import Configuration
from lope.core import commas
from lope.core.errors import SettingError
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.models.loading import load

_FLAGS = {"true": True, "yes": True, "false": False, "no": False, "auto": None}


@dataclass(frozen=True)
class Subject:
    """`model=hf:DIR,dtype=bfloat16,exact=no,drafter=ngram`: what is not named is as in the run's own options."""

    name: str
    model: str
    dtype: str
    exact: bool | None
    parts: Parts

    @classmethod
    def read(cls, text: str, base: "Subject") -> "Subject":
        """Read a configuration; `base` holds what it does not name. Raises SettingError that lists what is right."""
        own: dict[str, str] = {}
        rest = []
        for piece in filter(None, map(str.strip, commas.divided(text))):
            key, equals, value = piece.partition("=")
            if equals and key.strip() in ("model", "dtype", "exact"):
                if key.strip() in own or not value.strip():
                    raise SettingError(f"--config {text!r}: {key.strip()} is given once, with a value")
                own[key.strip()] = commas.read(value.strip())
            else:
                rest.append(piece)
        if "exact" in own and own["exact"] not in _FLAGS:
            raise SettingError(f"--config {text!r}: exact is one of {', '.join(_FLAGS)}, not {own['exact']!r}")
        named = ",".join(rest).strip()
        parts = base.parts
        name = text.strip()
        if named or not own:
            read = Configuration.read(named)
            parts, name = read.parts, name if read.name == named else read.name
        exact = _FLAGS[own["exact"]] if "exact" in own else base.exact
        return cls(name, own.get("model", base.model), own.get("dtype", base.dtype), exact, parts)

    def load(self, device: str, progress: bool) -> Engine:
        """Its engine. Raises LopeError."""
        loaded = load(self.model, dtype=self.dtype, device=device, progress=progress)
        exact = loaded.backend.can_be_exact if self.exact is None else self.exact
        return Engine(loaded, self.parts, exact=exact)

    def document(self) -> dict[str, object]:
        """For JSON."""
        return {"model": self.model, "dtype": self.dtype, "exact": self.exact, **dataclasses.asdict(self.parts)}
