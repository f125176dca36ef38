"""A set distilled for so many seconds, however often it was interrupted."""

import json
from collections.abc import Generator
from pathlib import Path

from lope.core import json_reader
from lope.core.errors import UsageError
from lope.core.whole_file import write_whole
from lope.models.loaded import LoadedModel
from lope.training.distilled_set import DistilledSet, Manifest
from lope.training.distiller import Distiller, Progress
from lope.training.prompt_sources import FilePrompts, OwnPrompts, PromptSource

# greedy answers count most: they are what most users ask for
_TEMPERATURES = (0.0, 0.0, 0.0, 0.7, 1.0)
_TOP_P, _TOP_K, _MAX_NEW_TOKENS, _WIDTH = 0.95, 64, 160, 96
# smaller targets have no early, middle and late layer
FEWEST_LAYERS = 6
# seconds that a kill may not have counted
_NOTING = 5.0


def feature_layers(layers: int) -> tuple[int, ...]:
    """EAGLE-3's own choice: low, middle and high. Raises UsageError for a target of too few layers."""
    if layers < FEWEST_LAYERS:
        raise UsageError(
            f"a target of {layers} layers has too few for a drafter that reads three of them (at least {FEWEST_LAYERS})"
        )
    return 2, layers // 2, layers - 3


class Distillation:
    """prompts: a file, or `own`. features: keep the hidden states that a feature drafter reads."""

    def __init__(self, model: LoadedModel, folder: Path, prompts: str, seed: int, *, features: bool) -> None:
        layers = model.backend.num_layers
        self._model = model
        self._source: PromptSource = OwnPrompts() if prompts == "own" else FilePrompts.read(Path(prompts), seed)
        manifest = Manifest.begun(
            model,
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
        latest = noted = 0.0
        try:
            spent = self._spent()
            distiller = Distiller(self._model, self._source, self._place, width=_WIDTH)
            for progress in distiller.run(lambda progress: spent + progress.seconds >= seconds):
                latest = progress.seconds
                if latest - noted > _NOTING:
                    noted = latest
                    write_whole(self._clock, json.dumps(spent + noted))
                yield progress
        finally:
            try:
                if latest > noted:
                    write_whole(self._clock, json.dumps(spent + latest))
            finally:
                self._place.close()

    def _spent(self) -> float:
        """Seconds of earlier runs. Raises UsageError where the clock is no number."""
        try:
            spent = json_reader.parsed(self._clock.read_bytes())
        except FileNotFoundError:
            return 0.0
        except (OSError, ValueError) as error:
            raise UsageError(f"{self._clock}: does not say how many seconds were spent: {error}") from None
        if isinstance(spent, bool) or not isinstance(spent, int | float) or not spent >= 0:
            raise UsageError(f"{self._clock}: does not say how many seconds were spent: {spent!r}")
        return float(spent)
