"""The target by the name under which other engines find it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lope.core.errors import UsageError
from lope.models.config_json import read_json
from lope.models.drafter_about import DrafterTarget

# the hub's names of what lope has built in
_ON_THE_HUB = {"smollm2": ("HuggingFaceTB/SmolLM2-135M-Instruct", ("LlamaForCausalLM",))}
_SIZES = {"vocab_size": "vocab_size", "hidden_size": "hidden_size", "num_hidden_layers": "num_layers"}


@dataclass(frozen=True)
class Verifier:
    """name: a hub name, or the full path of a folder or file. architectures: of its config.json, where at hand."""

    name: str
    architectures: tuple[str, ...]
    local: bool

    @classmethod
    def named(cls, name: str, target: DrafterTarget) -> "Verifier":
        """Find the model. Raises UsageError for a folder of other sizes than `target`."""
        plain = name.removeprefix("hf:")
        if plain in _ON_THE_HUB:
            return cls(*_ON_THE_HUB[plain], local=False)
        path = Path(plain).expanduser()
        if path.is_file():
            return cls(str(path.resolve()), (), local=True)
        if not path.is_dir():
            return cls(plain, (), local=False)
        config = read_json(path / "config.json")
        _compare(str(path), config, target)
        return cls(str(path.resolve()), tuple(config.get("architectures") or ()), local=True)


def _compare(where: str, config: Mapping[str, object], target: DrafterTarget) -> None:
    for field, ours in _SIZES.items():
        wanted = getattr(target, ours)
        if config.get(field) != wanted:
            raise UsageError(
                f"{where}: has {field} {config.get(field)}, the drafter was trained for {wanted} ({target.name})"
            )
