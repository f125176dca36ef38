"""Checks that settings run on themselves: each raises SettingError with the name, the bound and the value."""

import math

from lope.core.errors import SettingError


def at_least(name: str, value: float, low: float) -> None:
    """Refuse NaN and anything below `low`."""
    if math.isnan(value) or value < low:
        raise SettingError(f"{name} must be at least {low:g}, not {value}")


def above(name: str, value: float, low: float) -> None:
    """Refuse NaN, infinity and anything not above `low`."""
    if not math.isfinite(value) or value <= low:
        raise SettingError(f"{name} must be a finite number above {low:g}, not {value}")


def between(name: str, value: float, low: float, high: float) -> None:
    """Refuse NaN and anything outside [low, high]."""
    if not low <= value <= high:
        raise SettingError(f"{name} must lie between {low:g} and {high:g}, not {value}")


def whole(name: str, value: object, low: int) -> None:
    """Refuse what is no whole number, and anything below `low`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise SettingError(f"{name} must be a whole number of at least {low}, not {value!r}")
