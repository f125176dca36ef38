"""A small decoder that was taught by the target and reads its embedding (Goel et al. 2024, arXiv:2403.00858)."""

from dataclasses import dataclass
from typing import Any

from lope.drafters.autoregressive import AutoregressiveDrafter
from lope.drafters.own_sampling import OwnSampling
from lope.drafters.trained import trained_drafter
from lope.drafters.vocabulary import RespelledDraftModel, Trimmed
from lope.drafters.window import WindowedDraftModel, draft_room
from lope.drafters.workshop import Workshop
from lope.models.lean.decoder import Decoder
from lope.models.lean.draft_model import LeanDraftModel
from lope.models.lean.drafter_weights import standalone_weights


@dataclass(frozen=True)
class StandaloneDrafter:
    """A trained drafter folder, or without `path` the one that lope ships for the target.

    temperature, top_k, top_p: its own sampling, None: the request's.
    """

    path: str = ""
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        self._own()

    def attach(self, workshop: Workshop) -> AutoregressiveDrafter[Any, Any]:
        """Load the drafter. Raises UsageError where it was not made for the target."""
        target = workshop.target
        folder = trained_drafter("standalone", self.path, target)
        table, context = target.backend.embedding, folder.about.decoder.context
        model = LeanDraftModel(Decoder(standalone_weights(folder, table), invariant=False))
        kept = folder.tensors["kept"].to(table.device)
        trimmed = RespelledDraftModel(model, Trimmed(kept, target.backend.vocab_size))
        return AutoregressiveDrafter(
            WindowedDraftModel(trimmed, context),
            workshop.shape,
            workshop.stop,
            name="standalone",
            own=self._own(),
            max_nodes=draft_room(context),
        )

    def _own(self) -> OwnSampling:
        return OwnSampling(self.temperature, self.top_k, self.top_p)
