"""JSON of files that anybody may have written or damaged: whatever is wrong with it is one kind of error."""

import json
from typing import Any

_LARGEST = 2**63


def parsed(text: str | bytes) -> Any:
    """What JSON says; a whole number beyond 64 bits becomes a float. Raises ValueError, in one line."""
    try:
        return json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _whole(digits: str) -> int | float:
    # Python refuses to read thousands of digits, and cannot make a float of such a number later
    number = int(digits) if len(digits) <= 20 else _LARGEST
    return number if abs(number) < _LARGEST else float(digits)
