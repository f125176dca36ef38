"""The drafters that come with lope: folders beside this file, each made for one target."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lope.models.config_json import read_json
from lope.models.drafter_about import DrafterTarget

if TYPE_CHECKING:
    from lope.models.loaded import LoadedModel

SHIPPED = Path(__file__).with_name("shipped")
_SIZES = ("vocab_size", "hidden_size", "num_layers")


def shipped(kind: str, target: "LoadedModel") -> Path | None:
    """The folder of the drafter of this kind that was made for the target, or None."""
    for path in sorted(SHIPPED.glob("*/drafter.json")):
        document = read_json(path)
        if document.get("kind") == kind and not differences(_target(document), target):
            return path.parent
    return None


def differences(made_for: DrafterTarget, target: "LoadedModel") -> list[str]:
    """In words, what a drafter was made for that the target has not."""
    backend = target.backend
    found = [
        f"{name} {getattr(made_for, name)} (the target {target.name} has {getattr(backend, name)})"
        for name in _SIZES
        if getattr(made_for, name) != getattr(backend, name)
    ]
    # a fingerprint reads the whole vocabulary: sizes that differ need none
    if not found and made_for.tokenizer != target.tokenizer.fingerprint:
        own, theirs = made_for.tokenizer[:12], target.tokenizer.fingerprint[:12]
        found.append(
            f"the tokenizer of {made_for.name}, {own}..., which is not that of the target {target.name}, {theirs}..."
        )
    return found


def _target(document: dict[str, Any]) -> DrafterTarget:
    return DrafterTarget(**document["target"])
