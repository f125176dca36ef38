"""What a drafter is made of and how it is taught, as numbers."""

from dataclasses import dataclass

from lope.core import checks
from lope.core.errors import SettingError
from lope.models.drafter_about import KINDS, STORAGES
from lope.training.losses import LOSSES

# tokens of a head for which nothing else was said
HEAD = 6144


@dataclass(frozen=True)
class Lessons:
    """What a drafter is made of and how it is taught.

    vocab:  tokens that the head keeps, those that the sets say most; None: HEAD of them, or those of the drafter to
            begin from.
    hidden, layers: of a stand-alone drafter; a feature drafter has one layer as wide as the target's.
    context: what a stand-alone drafter reads of a longer text is a window of it.
    loss:   of the last stage. text, output: shares of the steps for next-token learning on text and on the target's
            answers before it. joined: see Batches.
    """

    kind: str = "standalone"
    vocab: int | None = None
    hidden: int = 256
    layers: int = 4
    context: int = 768
    loss: str = "kld"
    text: float = 0.1
    output: float = 0.1
    length: int = 512
    rows: int = 2
    joined: float = 0.5
    seed: int = 0
    storage: str = "int8"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingError(f"a drafter is {' or '.join(KINDS)}, not {self.kind!r}")
        if self.storage not in STORAGES:
            raise SettingError(f"weights are stored as {', '.join(STORAGES)}, not {self.storage!r}")
        LOSSES.make(self.loss)
        if self.vocab is not None:
            checks.at_least("vocab", self.vocab, 1)
        checks.at_least("rows", self.rows, 1)
        checks.at_least("length", self.length, 16)
        checks.at_least("hidden", self.hidden, 64)
        checks.at_least("layers", self.layers, 1)
        checks.between("seed", self.seed, -(1 << 63), (1 << 64) - 1)  # what torch takes
        checks.between("text", self.text, 0.0, 1.0)
        checks.between("output", self.output, 0.0, 1.0)
        if self.hidden % 64:
            raise SettingError(f"hidden must be a multiple of 64 (the width of a head), not {self.hidden}")
