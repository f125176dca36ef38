"""What every verb prints: one JSON document with --json, else lines for people; errors as one clear line."""

import json
import math
import sys
from typing import Any, NoReturn

from rich.console import Console
from rich.markup import escape

console = Console(highlight=False)
complaints = Console(stderr=True, highlight=False)


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def print_json(document: dict[str, Any]) -> None:
    """Write one JSON document, and nothing else, on stdout."""
    sys.stdout.write(json.dumps(_finite(document), ensure_ascii=False) + "\n")
    sys.stdout.flush()


def fail(message: str, *, exit_code: int, as_json: bool = False, document: dict[str, Any] | None = None) -> NoReturn:
    """End the command with one clear line on stderr; with --json, the JSON there is, with an `error` in it."""
    if as_json:
        print_json({**(document or {}), "error": message})
    complaints.print(f"[red]lope:[/red] {escape(message)}", soft_wrap=True)
    raise SystemExit(exit_code)
