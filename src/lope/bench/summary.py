"""What the rows say: every system against the reference, over all prompts and in each group."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from lope.bench.bootstrap import Interval, median_interval
from lope.bench.groups import in_order
from lope.bench.pooled import Pooled
from lope.bench.record import Row


@dataclass(frozen=True)
class Figures:
    """One system over some prompts. Pooled: sums over prompts divided; other figures are medians over prompts.

    speedup, speedup_with_prompt: medians of per-prompt ratios to the reference, with bootstrap bounds.
    tau:        tokens per pass, with bootstrap bounds.
    agreement: share of prompts whose tokens are all the reference's.
    acceptance: by draft position, pooled: accepted where it was offered.
    """

    prompts: int
    speedup: Interval | None
    speedup_with_prompt: Interval | None
    tau: Pooled | None
    agreement: float | None
    drafted: int | None
    accepted: int | None
    acceptance: tuple[float, ...]
    rate: float | None
    rate_with_prompt: float | None
    time_to_first_token: float | None
    time_per_token_p50: float | None
    time_per_token_p95: float | None
    peak_memory_bytes: int | None

    @property
    def tokens_per_pass(self) -> float | None:
        """Tokens after the prompt's pass over passes after it."""
        return None if self.tau is None else self.tau.value

    def bounds(self) -> dict[str, float | None]:
        """Tokens per pass and speed-up with their intervals, as every JSON document names them."""
        tau, speedup = self.tau, self.speedup
        return {
            "tokens_per_pass": tau.value if tau else None,
            "tokens_per_pass_low": tau.low if tau else None,
            "tokens_per_pass_high": tau.high if tau else None,
            "speedup": speedup.median if speedup else None,
            "speedup_low": speedup.low if speedup else None,
            "speedup_high": speedup.high if speedup else None,
        }

    @property
    def drafted_per_accepted(self) -> float | None:
        """The waste: drafted tokens per accepted one."""
        return self.drafted / self.accepted if self.drafted is not None and self.accepted else None

    @classmethod
    def of(cls, rows: Sequence[Row], reference: Mapping[str, Row]) -> "Figures":
        """rows: one system's. reference: the reference's rows by prompt."""
        pairs = [(row, reference[row.id]) for row in rows if row.id in reference]
        ratios = [_ratio(row.rate, base.rate) for row, base in pairs]
        with_prompt = [_ratio(row.rate_with_prompt, base.rate_with_prompt) for row, base in pairs]
        passes = [row.passes for row in rows if row.passes is not None]
        drafted, accepted = [row.drafted for row in rows], [row.accepted for row in rows]
        known = len(passes) == len(rows)
        return cls(
            prompts=len(rows),
            speedup=median_interval([ratio for ratio in ratios if ratio is not None]),
            speedup_with_prompt=median_interval([ratio for ratio in with_prompt if ratio is not None]),
            tau=Pooled.of([row.decode_tokens for row in rows], passes) if known else None,
            agreement=sum(row.tokens == base.tokens for row, base in pairs) / len(pairs) if pairs else None,
            drafted=None if None in drafted else sum(filter(None, drafted)),
            accepted=None if None in accepted else sum(filter(None, accepted)),
            acceptance=_acceptance(rows),
            rate=_median([row.rate for row in rows]),
            rate_with_prompt=_median([row.rate_with_prompt for row in rows]),
            time_to_first_token=_median([row.time_to_first_token for row in rows]),
            time_per_token_p50=_median([row.time_per_token(50) for row in rows]),
            time_per_token_p95=_median([row.time_per_token(95) for row in rows]),
            peak_memory_bytes=max((row.peak_memory_bytes or 0 for row in rows), default=0) or None,
        )


@dataclass(frozen=True)
class Summary:
    """All systems, in the order of the run. overall[system], by_group[system][group]."""

    reference: str
    groups: tuple[str, ...]
    overall: dict[str, Figures]
    by_group: dict[str, dict[str, Figures]]

    @classmethod
    def of(cls, rows: Sequence[Row], systems: Sequence[str], reference: str) -> "Summary":
        """Summarise rows; systems without rows are left out."""
        base = {row.id: row for row in rows if row.system == reference}
        present = [system for system in systems if any(row.system == system for row in rows)]
        groups = in_order(row.group for row in rows)
        overall, by_group = {}, {}
        for system in present:
            own = [row for row in rows if row.system == system]
            overall[system] = Figures.of(own, base)
            inside = {group: [row for row in own if row.group == group] for group in groups}
            by_group[system] = {group: Figures.of(some, base) for group, some in inside.items() if some}
        return cls(reference, tuple(groups), overall, by_group)

    @classmethod
    def of_document(cls, document: Mapping[str, Any], reference: str | None = None) -> "Summary":
        """Summarise a results file, against its own reference or another system."""
        rows = [Row.from_json(row) for row in document["rows"]]
        return cls.of(rows, [system["name"] for system in document["systems"]], reference or document["reference"])

    def to_json(self) -> dict[str, Any]:
        """What `lope bench speed --json` prints, but for the name of the results file."""
        systems = {
            name: {**_brief(figures), "categories": {group: _brief(f) for group, f in self.by_group[name].items()}}
            for name, figures in self.overall.items()
        }
        return {"reference": self.reference, "systems": systems}


def _brief(figures: Figures) -> dict[str, float | None]:
    with_prompt = figures.speedup_with_prompt
    return {
        **figures.bounds(),
        "speedup_with_prompt": with_prompt.median if with_prompt else None,
        "agreement": figures.agreement,
    }


def _ratio(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _acceptance(rows: Sequence[Row]) -> tuple[float, ...]:
    offered: Counter[int] = Counter()
    accepted: Counter[int] = Counter()
    for turn in (turn for row in rows for turn in row.turns):
        offered.update(dict(enumerate(turn.offered_at)))
        accepted.update(dict(enumerate(turn.accepted_at)))
    return tuple(accepted[place] / offered[place] for place in sorted(offered) if offered[place])
