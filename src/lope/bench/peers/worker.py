"""Runs one peer in its own environment: requests come as JSON lines on stdin, replies go as JSON lines to stdout.

Started as `python -P worker.py FILE`, where FILE has `open_peer(settings)`. It imports nothing of lope, which the
peer's environment does not hold. What the peer itself prints on stdout goes to stderr.
"""

import ctypes
import importlib.util
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1


def end_with_driver() -> None:
    """Be killed when the driver ends, however it ends: a worker that sleeps (SIGSTOP) hears nothing else.

    Linux wakes what was asleep when its driver died, but not what falls asleep a moment later.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def load(path: Path) -> Any:
    """The peer's module, read by its path, so that its name hides no package."""
    spec = importlib.util.spec_from_file_location(f"lope_peer_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def serve(path: Path) -> None:
    """Answer requests until stdin ends. The first opens the model; the others are prompts."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    peer: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        reply: dict[str, Any]
        try:
            if peer is None:
                peer = load(path).open_peer(request)
                reply = {"versions": peer.versions}
            else:
                reply = peer.answer(request["ids"], request["max_new_tokens"], request["stop"], request["fresh"])
        except Exception as error:  # noqa: BLE001 - whatever a peer raises is told to the driver
            reply = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:500]}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    end_with_driver()
    serve(Path(sys.argv[1]))
