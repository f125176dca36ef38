"""One way in which an engine misreads a drafter's folder, or cannot read it."""

from dataclasses import dataclass

VLLM, SGLANG, LLAMA_CPP, SPECULATORS = "vLLM 0.33", "SGLang 0.5.23", "llama.cpp", "speculators 0.9"


@dataclass(frozen=True)
class Trap:
    """A trap that a folder falls into.

    name:    a few words that stay the same from folder to folder.
    loaders: who falls into it.
    says:    what is wrong in this folder, and what comes of it.
    """

    name: str
    loaders: tuple[str, ...]
    says: str

    @property
    def line(self) -> str:
        """One line for people."""
        return f"{self.name} ({', '.join(self.loaders)}): {self.says}"
