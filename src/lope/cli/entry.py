"""Where the command line begins, before it is imported."""

import sys


def main() -> None:
    """Import it and run it: Ctrl-C ends it in one line at any moment, also while it is imported."""
    try:
        from lope.cli.main import main as run

        run()
    except KeyboardInterrupt:
        if "--json" in sys.argv[1:]:
            sys.stdout.write('{"error": "interrupted"}\n')
        sys.stderr.write("lope: interrupted\n")
        raise SystemExit(130) from None
