"""The target's own first layers draft, sharing its weights: for tests, since an untrained exit agrees too seldom."""

from dataclasses import dataclass
from typing import Any

from lope.core import checks
from lope.drafters.autoregressive import AutoregressiveDrafter
from lope.drafters.workshop import Workshop


@dataclass(frozen=True)
class TruncatedDrafter:
    """The first `layers` layers with the target's final norm and head (half of SmolLM2 agrees on 10 % of tokens)."""

    layers: int

    def __post_init__(self) -> None:
        checks.at_least("layers", self.layers, 1)

    def attach(self, workshop: Workshop) -> AutoregressiveDrafter[Any, Any]:
        """A view of the target."""
        model = workshop.target.backend.truncated(self.layers).draft_model()
        return AutoregressiveDrafter(model, workshop.shape, workshop.stop, name="truncated")
