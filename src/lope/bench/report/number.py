"""A number on the page: what is shown, and beside it in attributes what it is and its exact value."""

import html
from dataclasses import dataclass

ALL = "all"
_FORMS = {
    "speedup": "{:.2f}",
    "tokens_per_pass": "{:.2f}",
    "drafted_per_accepted": "{:.2f}",
    "rate": "{:.1f}",
    "prompts": "{:.0f}",
    "drafted": "{:.0f}",
    "accepted": "{:.0f}",
    "rows": "{:.0f}",
}


@dataclass(frozen=True)
class Number:
    """One figure of one system over one group of prompts (`all`: over every prompt).

    figure: the name of a field of `Figures`; `_low` and `_high` behind it for its bounds, `@3` for draft position 3.
    """

    figure: str
    system: str
    group: str
    value: float | None

    @property
    def text(self) -> str:
        """As it is shown."""
        if self.value is None:
            return "–"
        name = self.figure.partition("@")[0].replace("noise", "speedup")
        for ending in ("_low", "_high", "_with_prompt"):
            name = name.removesuffix(ending)
        if name in ("agreement", "acceptance"):
            return f"{100 * self.value:.0f}\u00a0%"
        if name.startswith("time_") or name == "pass_seconds":
            return f"{1000 * self.value:.1f}\u00a0ms"
        if name == "peak_memory_bytes":
            return f"{self.value / 1e6:.0f}\u00a0MB"
        return _FORMS[name].format(self.value)

    @property
    def attributes(self) -> str:
        """The attributes by which it can be found and checked."""
        value = "" if self.value is None else f' data-value="{self.value!r}"'
        system, group = html.escape(self.system), html.escape(self.group)
        return f'data-figure="{self.figure}" data-system="{system}" data-group="{group}"{value}'

    def show(self) -> str:
        """The number as HTML."""
        return f"<span {self.attributes}>{self.text}</span>"
