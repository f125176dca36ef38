"""A linear axis with round ticks; places are per cent of its length, so that a chart fits any width."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, with a tick every `step`."""

    low: float
    high: float
    step: float

    @classmethod
    def over(cls, values: list[float], *, low: float = 0.0) -> "Axis":
        """From `low` to the first tick beyond all values, in five steps or so."""
        highest = max([*values, low + 1e-9])
        rough = (highest - low) / 5
        power = 10.0 ** math.floor(math.log10(rough)) if rough > 1e-12 else 1.0
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
        return cls(low, low + step * math.ceil((highest - low) / step - 1e-9 or 1), step)

    def place(self, value: float) -> float:
        """Per cent of the length."""
        return 100.0 * (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[float]:
        """Where the ticks are."""
        return [self.low + number * self.step for number in range(round((self.high - self.low) / self.step) + 1)]

    def write(self, value: float) -> str:
        """A tick's label."""
        return f"{value:.{max(0, -math.floor(math.log10(self.step) + 1e-9))}f}"

    def show(self, side: str = "left", unit: str = "") -> str:
        """The labels of the ticks as HTML; side: the CSS property that places them."""
        spans = [
            f'<span data-tick="{tick!r}" style="{side}:{self.place(tick):.3f}%">{self.write(tick)}{unit}</span>'
            for tick in self.ticks
        ]
        return "".join(spans)
