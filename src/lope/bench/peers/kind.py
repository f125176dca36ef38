"""What a peer is: how it is installed, what it reads, in which ways it is run."""

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lope.models.cache_folder import CacheFolder


@dataclass(frozen=True)
class Variant:
    """One way of running a peer; each is a system, in a process of its own. settings: told to its worker."""

    name: str
    settings: Mapping[str, object]


@dataclass(frozen=True)
class PeerKind:
    """One peer.

    module: what its environment must be able to import. worker: the file beside this one that runs it.
    reads: `folder` (Hugging Face) or `gguf`. unwanted: packages to remove again, for they break it.
    build: environment variables of its installation, where the user sets none. environment: of its process.
    """

    name: str
    module: str
    worker: str
    requirements: tuple[str, ...]
    reads: str
    variants: tuple[Variant, ...]
    unwanted: tuple[str, ...] = ()
    build: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """The file that runs it, in its own environment."""
        return Path(__file__).with_name(f"{self.worker}.py")

    @property
    def home(self) -> Path:
        """The folder of its virtual environment."""
        return CacheFolder.default().root / "peers" / self.name

    @property
    def python(self) -> Path | None:
        """The Python that has it: its own environment's, else this one where it is installed here; None: absent."""
        own = self.home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        ready = self.home / "ready"
        if own.exists() and ready.exists():
            return own
        return Path(sys.executable) if importlib.util.find_spec(self.module) else None

    @property
    def missing(self) -> str:
        """One line about a peer that is absent."""
        return f"{self.name} is skipped: it is not installed (get it with: make peers PEERS={self.name})"
