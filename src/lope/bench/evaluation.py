"""What an evaluation of a drafter found: figures of every operating point, and the one that is best."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lope.bench.point_figures import PointFigures
from lope.bench.summary import Figures, Summary

# of a run's settings, what a card tells
_TOLD = (
    *("suite", "suite_sha256", "prompts", "per_category", "max_new_tokens", "model", "dtype", "device", "threads"),
    *("exact", "seed", "processor", "lope_version", "torch_version"),
)


@dataclass(frozen=True)
class Evaluation:
    """settings: of the run. others: plain decoding again (the noise) and other drafters. summary: of all.

    draft_cost: c, the numbers that a step of drafting reads over those that a pass of the target reads.
    context:    tokens that a pass found before it, mean; costs are those at this context.
    """

    settings: dict[str, Any]
    draft_cost: float
    context: int
    points: tuple[PointFigures, ...]
    others: dict[str, Figures]
    summary: Summary

    @property
    def greedy(self) -> bool:
        """Whether answers were the best tokens, not drawn."""
        return "temperature" not in self.settings

    @cached_property
    def best(self) -> PointFigures | None:
        """The fastest by the calibration and by acceptance, not by the clock; None where nothing can be said."""
        known = [figures for figures in self.points if figures.expected is not None and figures.measured.tau]
        return max(known, key=lambda figures: figures.expected or 0.0, default=None)

    def operating_point(self) -> dict[str, Any] | None:
        """The best one, as `drafter.json` keeps it."""
        if self.best is None:
            return None
        told = ("shape", "depth", "nodes", "tokens_per_pass", "expected_speedup")
        return {name: value for name, value in self.best.to_json().items() if name in told}

    def to_json(self) -> dict[str, Any]:
        """The figures, as `drafter.json` keeps them."""
        brief = self.summary.to_json()["systems"]
        beside = {}
        for name, figures in self.others.items():
            told = {key: value for key, value in brief[name].items() if key != "categories"}
            beside[name] = {**told, "acceptance": list(figures.acceptance), "tokens_per_second": figures.rate}
        return {
            **{name: self.settings[name] for name in _TOLD},
            "temperature": self.settings.get("temperature", 0.0),
            "draft_cost": self.draft_cost,
            "context": self.context,
            "points": [figures.to_json() for figures in self.points],
            "beside": beside,
        }

    def by_group(self) -> dict[str, Any]:
        """[system][group]: the figures of `lope bench speed --json`."""
        return {name: figures["categories"] for name, figures in self.summary.to_json()["systems"].items()}
