"""One layer that was taught by the target and reads its hidden states (EAGLE-3; Li et al. 2025, arXiv:2503.01840)."""

from dataclasses import dataclass
from typing import Any

from lope.drafters.around import AroundDrafter
from lope.drafters.autoregressive import AutoregressiveDrafter
from lope.drafters.own_sampling import OwnSampling
from lope.drafters.trained import trained_drafter
from lope.drafters.vocabulary import RespelledDraftModel, Trimmed
from lope.drafters.waiting import when_ready
from lope.drafters.workshop import Workshop
from lope.models.lean.drafter_weights import feature_weights
from lope.models.lean.feature_draft_model import FeatureDraftModel


@dataclass(frozen=True)
class EagleDrafter:
    """A trained drafter folder, or without `path` the one that lope ships for the target.

    It drafts from the second pass on: in the first there are no hidden states yet. temperature, top_k, top_p: its own
    sampling, None: the request's.
    """

    path: str = ""
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        self._own()

    def attach(self, workshop: Workshop) -> AroundDrafter[Any, Any]:
        """Load the drafter. Raises UsageError where it was not made for the target."""
        target = workshop.target
        folder = trained_drafter("eagle", self.path, target)
        table = target.backend.embedding
        model = FeatureDraftModel(feature_weights(folder, table, target.backend.context))
        kept = folder.tensors["kept"].to(table.device)
        trimmed = RespelledDraftModel(model, Trimmed(kept, target.backend.vocab_size))
        drafter = AutoregressiveDrafter(trimmed, workshop.shape, workshop.stop, name="eagle", own=self._own())
        return AroundDrafter(drafter, when_ready)

    def _own(self) -> OwnSampling:
        return OwnSampling(self.temperature, self.top_k, self.top_p)
