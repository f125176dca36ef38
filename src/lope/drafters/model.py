"""A smaller model with the target's tokenizer runs ahead, with a cache of its own."""

from dataclasses import dataclass
from typing import Any

from lope.core.errors import UsageError
from lope.core.protocols import DraftModel
from lope.drafters.autoregressive import AutoregressiveDrafter
from lope.drafters.own_sampling import OwnSampling
from lope.drafters.vocabulary import Fitted, RespelledDraftModel
from lope.drafters.window import WindowedDraftModel, draft_room
from lope.drafters.workshop import Workshop


@dataclass(frozen=True)
class ModelDrafter:
    """Any model that `--model` takes. temperature, top_k, top_p: its own sampling, None: the request's.

    A text longer than its context is read through a window; pictures are not read.
    """

    path: str
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        self._own()

    def attach(self, workshop: Workshop) -> AutoregressiveDrafter[Any, Any]:
        """Load the model. Raises UsageError where its tokenizer is not the target's (by content, not by size)."""
        target, drafter = workshop.target, workshop.load(self.path)
        if drafter.tokenizer.fingerprint != target.tokenizer.fingerprint:
            raise UsageError(
                f"the drafter {drafter.name} and the target {target.name} have different tokenizers: "
                "a drafter must cut text into the target's own tokens"
            )
        model: DraftModel[Any, Any] = drafter.backend.draft_model()
        if drafter.backend.vocab_size != target.backend.vocab_size:
            model = RespelledDraftModel(model, Fitted(target.backend.vocab_size))
        return AutoregressiveDrafter(
            WindowedDraftModel(model, drafter.backend.context),
            workshop.shape,
            workshop.stop,
            own=self._own(),
            max_nodes=draft_room(drafter.backend.context),
        )

    def _own(self) -> OwnSampling:
        return OwnSampling(self.temperature, self.top_k, self.top_p)
