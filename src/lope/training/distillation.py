"""A set distilled for so many seconds, however often it was interrupted."""

import json
from collections.abc import Generator
from pathlib import Path

from lope.core.errors import UsageError
from lope.models.loaded import LoadedModel
from lope.training.distilled_set import DistilledSet, Manifest
from lope.training.distiller import Distiller, Progress
from lope.training.prompt_sources import FilePrompts, OwnPrompts, PromptSource

# greedy answers count most: they are what most users ask for
_TEMPERATURES = (0.0, 0.0, 0.0, 0.7, 1.0)
_TOP_P, _TOP_K, _MAX_NEW_TOKENS, _WIDTH = 0.95, 64, 160, 96


def feature_layers(layers: int) -> tuple[int, ...]:
    """EAGLE-3's own choice: low, middle and high. Raises UsageError for a target of too few layers."""
    if layers < 6:
        raise UsageError(f"a target of {layers} layers has too few for a drafter that reads three of them (at least 6)")
    return 2, layers // 2, layers - 3


class Distillation:
    """prompts: a file, or `own`. features: keep the hidden states that a feature drafter reads."""

    def __init__(self, model: LoadedModel, folder: Path, prompts: str, seed: int, *, features: bool) -> None:
        layers = model.backend.num_layers
        self._model = model
        self._source: PromptSource = OwnPrompts() if prompts == "own" else FilePrompts.read(Path(prompts), seed)
        manifest = Manifest(
            target=model.name,
            tokenizer=model.tokenizer.fingerprint,
            vocab_size=model.backend.vocab_size,
            hidden_size=model.backend.hidden_size,
            prompts=self._source.name,
            temperatures=_TEMPERATURES,
            top_p=_TOP_P,
            top_k=_TOP_K,
            layers=feature_layers(layers) if features else (),
            max_new_tokens=_MAX_NEW_TOKENS,
            seed=seed,
        )
        self._place = DistilledSet.begin(folder, manifest)
        self._clock = folder / "seconds.json"

    def run(self, seconds: float) -> Generator[Progress]:
        """Distil until `seconds` are spent, those of earlier runs included."""
        spent = json.loads(self._clock.read_text(encoding="utf-8")) if self._clock.exists() else 0.0
        noted = 0.0
        distiller = Distiller(self._model, self._source, self._place, width=_WIDTH)
        try:
            for progress in distiller.run(lambda progress: spent + progress.seconds >= seconds):
                if progress.seconds - noted > 5.0:
                    noted = progress.seconds
                    self._clock.write_text(json.dumps(spent + noted), encoding="utf-8")
                yield progress
        finally:
            self._place.close()
