"""What a drafter's settings are turned into a drafter with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lope.core.protocols import Drafter, Shape, Stop

if TYPE_CHECKING:
    from lope.models.loaded import LoadedModel


@dataclass(frozen=True, eq=False)
class Workshop:
    """The engine's offer: the target, the shape and stop rule that were chosen, and how to load another model."""

    target: "LoadedModel"
    shape: Shape
    stop: Stop
    load: "Callable[[str], LoadedModel]"


class DrafterSettings(Protocol):
    """What the table of drafters names: frozen settings that become a drafter beside a target."""

    def attach(self, workshop: Workshop) -> Drafter[Any, Any]:
        """The drafter. Raises UsageError where it does not fit the target."""
