"""The tables of the report: every figure of every system, and the settings of the run."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

from lope.bench.report.number import ALL, Number
from lope.bench.summary import Figures, Summary

_COLUMNS = {
    "prompts": "prompts",
    "speedup": "speed-up",
    "speedup_low": "at least",
    "speedup_high": "at most",
    "speedup_with_prompt": "with prompt",
    "speedup_with_prompt_low": "at least",
    "speedup_with_prompt_high": "at most",
    "tokens_per_pass": "tokens per pass",
    "agreement": "same answers",
    "rate": "tokens/s",
    "rate_with_prompt": "tokens/s with prompt",
    "time_to_first_token": "first token",
    "time_per_token_p50": "a token, median",
    "time_per_token_p95": "a token, slow (95 %)",
    "drafted": "drafted",
    "accepted": "accepted",
    "drafted_per_accepted": "drafted per accepted",
    "peak_memory_bytes": "memory",
}


def figure_table(summary: Summary, groups: Sequence[str]) -> str:
    """All systems in all groups."""
    head = "".join(f"<th>{html.escape(title)}</th>" for title in ("system", *_COLUMNS.values()))
    rows = []
    for group in groups:
        title = "all prompts" if group == ALL else group.replace("_", " ")
        rows.append(f'<tr class="group"><th colspan="{1 + len(_COLUMNS)}">{html.escape(title)}</th></tr>')
        for name in summary.overall:
            figures = summary.overall[name] if group == ALL else summary.by_group[name].get(group)
            if figures is not None:
                cells = "".join(
                    f"<td>{Number(key, name, group, value_of(figures, key)).show()}</td>" for key in _COLUMNS
                )
                rows.append(f"<tr><td>{html.escape(name)}</td>{cells}</tr>")
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def value_of(figures: Figures, key: str) -> float | None:
    """A figure by its name; bounds of an interval by `_low` and `_high` behind it."""
    name, end = key, "median"
    for bound in ("low", "high"):
        if key.endswith(f"_{bound}"):
            name, end = key.removesuffix(f"_{bound}"), bound
    found = getattr(figures, name)
    if name.startswith("speedup"):
        found = getattr(found, end) if found is not None else None
    return None if found is None else float(found)


def settings_table(document: Mapping[str, Any]) -> str:
    """Settings, systems and sessions."""
    rows = [_row(name, value) for name, value in document["settings"].items()]
    for system in document["systems"]:
        versions = ", ".join(f"{name} {version}" for name, version in system.get("versions", {}).items())
        rows.append(_row(f"system {system['name']}", f"{system['how']}{'; ' + versions if versions else ''}"))
    for number, session in enumerate(document["sessions"], start=1):
        versions = ", ".join(f"{name} {version}" for name, version in session["versions"].items())
        words = f"{session['started']}, commit {session['commit']}, load {session['load_average']}, {versions}"
        rows.append(_row(f"session {number}", "; ".join([words, *session["notes"]])))
    return f'<div class="scroll"><table class="settings"><tbody>{"".join(rows)}</tbody></table></div>'


def _row(name: str, value: object) -> str:
    text = " · ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"<tr><th data-setting>{html.escape(name)}</th><td data-setting>{html.escape(text)}</td></tr>"
