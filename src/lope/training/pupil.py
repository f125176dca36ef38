"""A drafter while it learns: the door between the trainer and the nets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

from lope.core.errors import UsageError
from lope.models.lean.config import DecoderConfig
from lope.training.batches import Batch
from lope.training.losses.law import Loss


@dataclass(frozen=True, eq=False)
class Lesson:
    """What one batch taught.

    loss:       scalar, differentiable.
    accepted:   float [steps]: sum over places of the acceptance at draft position 1, 2, ...
    places:     float [steps]: how many places.
    """

    loss: Tensor
    accepted: Tensor
    places: Tensor


class Pupil(Protocol):
    """A net that can be trained and written as a drafter folder."""

    @property
    def kind(self) -> str:
        """`standalone` or `eagle`."""

    @property
    def config(self) -> DecoderConfig:
        """Its sizes."""

    @property
    def module(self) -> nn.Module:
        """Its parameters."""

    @property
    def needs_features(self) -> bool:
        """Whether batches must hold the target's hidden states."""

    def losses(self, batch: Batch, loss: Loss) -> Lesson:
        """Forward over a packed batch."""

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from what `tensors` gave; the kept tokens are the same. Raises UsageError for other shapes."""

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of its drafter folder, by name."""


def refuse_other_sizes(own: Mapping[str, Tensor], begun: Mapping[str, Tensor]) -> None:
    """Raise UsageError where a drafter to begin from has other tensors, or of other shapes, than what begins."""
    for name in {**own, **begun}:
        if name not in own or name not in begun or own[name].shape != begun[name].shape:
            raise UsageError(f"the drafter to begin from has another {name}: ask for the sizes that it has")
