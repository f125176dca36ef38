"""lope makes a language model answer faster on the hardware you already have, without changing its answers."""

import importlib
from typing import TYPE_CHECKING, Any

from lope.version import __version__

if TYPE_CHECKING:
    from lope.core.errors import LopeError
    from lope.core.prompt import Prompt
    from lope.engine.answer import Answer, Piece, Stats
    from lope.engine.conversation import Conversation
    from lope.engine.engine import Engine
    from lope.engine.opening import load

__all__ = ["Answer", "Conversation", "Engine", "LopeError", "Piece", "Prompt", "Stats", "__version__", "load"]

# Found on first use: `lope --help` and `lope learn` must not wait for torch
_HOMES = {
    "Answer": "lope.engine.answer",
    "Conversation": "lope.engine.conversation",
    "Engine": "lope.engine.engine",
    "LopeError": "lope.core.errors",
    "Piece": "lope.engine.answer",
    "Prompt": "lope.core.prompt",
    "Stats": "lope.engine.answer",
    "load": "lope.engine.opening",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lope' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
