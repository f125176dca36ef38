"""How much is measured."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CalibrationPlan:
    """Rows and contexts of the passes, how often each, and limits in seconds that are kept as far as one pass allows.

    rounds: measurements of each pass. plain and drafts: rounds of the whole loop without and with a draft.
    """

    rows: tuple[int, ...]
    contexts: tuple[int, ...]
    rounds: int
    plain: int
    drafts: int
    pass_seconds: float
    draft_seconds: float
    quick: bool = False


FULL = CalibrationPlan((1, 2, 4, 8, 12, 16, 24, 32, 48, 64), (64, 256, 1024), 15, 20, 60, 90.0, 30.0)
QUICK = CalibrationPlan((1, 2, 4, 8, 16, 32), (64, 512), 9, 8, 20, 8.0, 4.0, quick=True)
