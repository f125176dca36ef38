"""Where the command line begins, before it is imported: Ctrl-C ends it in one line at any moment."""

import os
import signal
import sys
from types import FrameType

from lope.engine.interrupt import RAISING

# torch imports numpy in C code, which drops what is raised there, or leaves both half made: none can go on after that
_FRAGILE = ("torch", "numpy")


def main() -> None:
    """Import the command line and run it."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else whoever started it wants no Ctrl-C
            RAISING.append(_interrupted)
            signal.signal(signal.SIGINT, _interrupted)
        from lope.cli.main import main as run

        run()
    except KeyboardInterrupt:
        _say()
        raise SystemExit(130) from None


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; in the midst of importing torch or numpy end the process instead."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") in _FRAGILE:
            _say()
            os._exit(130)
        frame = frame.f_back
    raise KeyboardInterrupt


def _say() -> None:
    if "--json" in sys.argv[1:]:
        sys.stdout.write('{"error": "interrupted"}\n')
        sys.stdout.flush()
    sys.stderr.write("lope: interrupted\n")
    sys.stderr.flush()
