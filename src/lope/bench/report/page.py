"""The page: what was gained, by how much more than the noise, where, at what cost, and with which settings."""

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lope.bench.report.axis import Axis
from lope.bench.report.claims import Claim
from lope.bench.report.cost_chart import cost_charts
from lope.bench.report.lanes import Lane, Lanes
from lope.bench.report.lines import Line, LineChart
from lope.bench.report.number import ALL, Number
from lope.bench.report.tables import figure_table, settings_table
from lope.bench.summary import Figures, Summary

_STYLE = Path(__file__).with_name("style.css")


class Page:
    """The report of one results document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._summary = Summary.of_document(document)
        self._plain, self._again = document["plain"]
        self._noise = Summary.of_document(document, self._plain)
        names = list(self._summary.overall)
        self._colour = {name: min(place, 2 + (place - 2) % 10) for place, name in enumerate(self._in_colour(names))}
        self._groups = [ALL, *self._summary.groups]

    def show(self) -> str:
        """The whole file."""
        sections = [
            self._head(),
            self._speedups(),
            self._passes(),
            self._acceptance(),
            cost_charts(self._document, self._summary, self._colour),
            self._waste(),
            self._table(),
            self._settings(),
        ]
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1"><title>lope bench speed</title>'
            f"<style>{_STYLE.read_text(encoding='utf-8')}</style></head><body><main>{''.join(sections)}</main></body></html>\n"
        )

    def _in_colour(self, names: Sequence[str]) -> list[str]:
        """The two plain systems first: they are grey."""
        plain = [name for name in (self._plain, self._again) if name in names]
        return [*plain, *(name for name in names if name not in plain)]

    def _figures(self, system: str, group: str) -> Figures | None:
        return _of(self._summary, system, group)

    def _band(self, group: str) -> tuple[Number, Number] | None:
        """The noise: plain decoding over itself, in one group."""
        figures = _of(self._noise, self._again, group)
        if figures is None or figures.speedup is None:
            return None
        low, high = figures.speedup.low, figures.speedup.high
        return Number("noise_low", self._again, group, low), Number("noise_high", self._again, group, high)

    def _head(self) -> str:
        settings, summary = self._document["settings"], self._summary
        asked = summary.overall[summary.reference].prompts if summary.reference in summary.overall else 0
        prompts = Number("prompts", summary.reference, ALL, float(asked)).show()
        intro = (
            f"{prompts} prompts of the suite <em>{html.escape(str(settings['suite']))}</em>, every one answered by "
            f"every system before the next, {_sampled(settings)}, up to {_setting('max_new_tokens', settings)} new "
            "tokens each. "
            f"Model: {_setting('model', settings)} in {_setting('dtype', settings)} on "
            f"{_setting('processor', settings)}, threads: {_setting('threads', settings)}."
        )
        how = (
            "A speed-up is the median over prompts of tokens per second after the prompt, divided by those of "
            f"<em>{html.escape(summary.reference)}</em> on the same prompt. Plain decoding runs twice: what the two "
            "differ by is noise, shown as a grey band"
        )
        band = self._band(ALL)
        how += "." if band is None else f": {band[0].show()} to {band[1].show()} over all prompts."
        claims = "".join(self._claim(name) for name in summary.overall if name not in self._fixed())
        title = "What is gained on this machine"
        return f'<h1>{title}</h1><p class="soft">{intro}</p><p>{how}</p><ul class="claims">{claims}</ul>'

    def _fixed(self) -> tuple[str, ...]:
        return self._summary.reference, self._plain, self._again

    def _claim(self, name: str) -> str:
        figures, noise = self._summary.overall[name], self._noise.overall.get(self._again)
        if figures.speedup is None or noise is None or noise.speedup is None:
            return ""
        claim = Claim(figures.speedup, noise.speedup)
        numbers = {key: number.show() for key, number in _interval(name, ALL, figures).items()}
        agreement = Number("agreement", name, ALL, figures.agreement).show()
        return (
            f'<li class="{claim.verdict}" data-verdict="{html.escape(name)}"><strong>{html.escape(name)}: '
            f"{numbers['speedup']} times as fast</strong> ({numbers['speedup_low']} to {numbers['speedup_high']}); "
            f'{agreement} of the answers are the same, token for token.<span class="verdict">{claim.words}</span></li>'
        )

    def _speedups(self) -> str:
        shown = [name for name in self._summary.overall if name != self._summary.reference]
        bounds = [
            value
            for group in self._groups
            for name in shown
            if (figures := self._figures(name, group)) is not None and figures.speedup is not None
            for value in (figures.speedup.high, 1.0)
        ]
        axis = Axis.over(bounds)
        panels = []
        for group in self._groups:
            lanes = []
            for name in shown:
                figures = self._figures(name, group)
                if figures is not None and figures.speedup is not None:
                    numbers = _interval(name, group, figures)
                    ends = numbers["speedup_low"], numbers["speedup_high"]
                    lanes.append(Lane(name, self._colour[name], numbers["speedup"], ends))
            panels.append(Lanes(_title(group), lanes, axis, 1.0, band=self._band(group)).show())
        return _section(
            "Speed-up by category",
            "Dots are medians, lines their 95 % bootstrap intervals, the grey band is the noise. The dashed line is "
            f"{html.escape(self._summary.reference)}. Prompt excluded.",
            _panels(panels),
        )

    def _passes(self) -> str:
        text = (
            "Tokens that come out of each pass of the model after the prompt's own; plain decoding makes exactly one. "
            "This does not depend on the machine. Systems that do not tell their passes are not shown."
        )
        return _section("Tokens per pass by category", text, self._bars("tokens_per_pass", 1.0))

    def _waste(self) -> str:
        text = (
            "Drafted tokens for each one that was accepted: what is drafted in vain still costs drafting and checking."
        )
        return _section("Waste", text, self._bars("drafted_per_accepted", 0.0))

    def _bars(self, figure: str, baseline: float) -> str:
        """A panel a group with a bar for every system that drafts and tells."""
        drafting = [
            name for name, figures in self._summary.overall.items() if figures.drafted or figures.drafted is None
        ]
        numbers = {
            group: [
                Number(figure, name, group, value)
                for name in drafting
                if (figures := self._figures(name, group)) is not None
                and (value := getattr(figures, figure)) is not None
            ]
            for group in self._groups
        }
        axis = Axis.over([number.value or 0.0 for group in numbers.values() for number in group], low=baseline)
        panels = [
            Lanes(
                _title(group),
                [Lane(number.system, self._colour[number.system], number) for number in numbers[group]],
                axis,
                baseline,
                bars=True,
            ).show()
            for group in self._groups
            if numbers[group]
        ]
        return _panels(panels) if panels else '<p class="soft">No system of this run drafts and tells.</p>'

    def _acceptance(self) -> str:
        lines = []
        for name, figures in self._summary.overall.items():
            points = [
                (float(place), Number(f"acceptance@{place}", name, ALL, value))
                for place, value in enumerate(figures.acceptance, start=1)
            ]
            if points:
                lines.append(Line(name, self._colour[name], points))
        text = (
            "How likely the token at each draft position is accepted, where the one before it was: the longer this "
            "stays high, the deeper it pays to draft."
        )
        if not lines:
            return _section("Acceptance by position", text, '<p class="soft">No system of this run tells it.</p>')
        deepest = max(x for line in lines for x, _ in line.points)
        chart = LineChart(
            lines,
            across=Axis.over([deepest]) if deepest > 5 else Axis(0.0, 5.0, 1.0),
            up=Axis(0.0, 100.0, 20.0),
            x_label="position in the draft",
            y_label="accepted",
            unit=" %",
            scale=100.0,
        )
        return _section("Acceptance by position", text, chart.show())

    def _table(self) -> str:
        text = (
            "All prompts first, then each category. Times are medians over prompts; “with prompt” counts the prompt's "
            "own pass too; memory is the largest of the system's processes, which our own systems share."
        )
        return _section("Everything", text, figure_table(self._summary, self._groups))

    def _settings(self) -> str:
        return _section("Settings", "How and where this was measured.", settings_table(self._document))


def _of(summary: Summary, system: str, group: str) -> Figures | None:
    return summary.overall.get(system) if group == ALL else summary.by_group.get(system, {}).get(group)


def _interval(name: str, group: str, figures: Figures) -> dict[str, Number]:
    assert figures.speedup is not None
    values = {
        "speedup": figures.speedup.median,
        "speedup_low": figures.speedup.low,
        "speedup_high": figures.speedup.high,
    }
    return {figure: Number(figure, name, group, value) for figure, value in values.items()}


def _title(group: str) -> str:
    return "All prompts" if group == ALL else group.replace("_", " ")


def _setting(name: str, settings: Mapping[str, Any]) -> str:
    return f'<span data-setting="{name}">{html.escape(str(settings[name]))}</span>'


def _sampled(settings: Mapping[str, Any]) -> str:
    if "temperature" not in settings:
        return "greedily"
    return (
        f"drawn at temperature {_setting('temperature', settings)} (so systems say different things: which answers are "
        "the same tells nothing, and speed-ups compare different texts)"
    )


def _panels(panels: Iterable[str]) -> str:
    first, *others = panels
    return f'<div class="panels">{first.replace("panel", "panel wide", 1)}{"".join(others)}</div>'


def _section(title: str, text: str, content: str) -> str:
    return f'<section><h2>{title}</h2><p class="soft">{text}</p>{content}</section>'
