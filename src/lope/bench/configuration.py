"""One configuration of ours, as on the command line: `drafter=ngram,policy=calibrated`."""

import dataclasses
from dataclasses import dataclass

from lope.core import commas
from lope.core.errors import SettingError
from lope.drafters import DRAFTERS
from lope.engine.parts import Parts
from lope.policies import POLICIES
from lope.shapes import SHAPES
from lope.stops import STOPS
from lope.verifiers import VERIFIERS

_ROOMS = {"drafter": DRAFTERS, "shape": SHAPES, "verifier": VERIFIERS, "policy": POLICIES, "draft_stop": STOPS}


@dataclass(frozen=True)
class Configuration:
    """A system of ours by name. The name is `name=...` where that is given, else the text itself."""

    name: str
    parts: Parts

    @classmethod
    def read(cls, text: str) -> "Configuration":
        """Read `part=value,part=value`; its settings may follow a part: `drafter=model:path=DIR,policy=fixed`.

        What is not named is as in `lope.load`. Raises SettingError that lists the right names.
        """
        known = [field.name for field in dataclasses.fields(Parts)]
        given: dict[str, str] = {}
        last = ""
        for piece in filter(None, (piece.strip() for piece in commas.divided(text))):
            key, equals, value = piece.partition("=")
            key = key.strip().replace("-", "_")
            if equals and key in (*known, "name"):
                if key in given:
                    raise SettingError(f"--config {text!r}: {key} is given twice")
                given[key], last = value.strip(), key
            elif ":" in given.get(last, ""):
                given[last] += f",{piece}"
            else:
                raise SettingError(f"--config {text!r}: no setting {piece!r} (it takes: {', '.join(known)}, name)")
        if not given or "" in given.values():
            raise SettingError(
                f"--config {text!r}: write it as drafter=ngram,policy=fixed (it takes: {', '.join(known)})"
            )
        name = commas.read(given.pop("name", commas.within(text.strip())))
        for key, value in given.items():
            if key != "verifier" or value != "auto":
                _ROOMS[key].part(value.partition(":")[0])
        return cls(name, Parts(**given))

    @classmethod
    def plain(cls, name: str) -> "Configuration":
        """Plain decoding, one token a pass."""
        return cls(name, Parts(drafter="none"))

    @property
    def is_plain(self) -> bool:
        """Whether it drafts nothing."""
        return self.parts.drafter == "none"


@dataclass(frozen=True)
class Lineup:
    """Our systems of one run. Plain decoding is always there twice: their ratio is the noise of the run.

    reference: what speed-ups are over. plain, again: the names of the two plain ones.
    """

    configurations: tuple[Configuration, ...]
    plain: str
    again: str

    @property
    def reference(self) -> str:
        """The first configuration's name."""
        return self.configurations[0].name

    @classmethod
    def of(cls, texts: list[str]) -> "Lineup":
        """The configurations asked for (none: plain and ngram), and plain decoding as often as it is lacking."""
        asked = [Configuration.read(text) for text in texts]
        if not asked:
            asked = [Configuration.plain("plain"), Configuration("ngram", Parts(drafter="ngram"))]
        plain = [configuration for configuration in asked if configuration.is_plain][:2]
        for name in ("plain", "plain again"):
            if len(plain) < 2 and name not in [configuration.name for configuration in plain]:
                plain.append(Configuration.plain(name))
        added = [configuration for configuration in plain if configuration not in asked]
        everything = [asked[0], *added, *asked[1:]]
        names = [configuration.name for configuration in everything]
        for name in names:
            if names.count(name) > 1:
                raise SettingError(f"two configurations are called {name!r}: give one of them another name=...")
        return cls(tuple(everything), plain[0].name, plain[1].name)
