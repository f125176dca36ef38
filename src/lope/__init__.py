"""lope makes a language model answer faster on the hardware you already have, without changing its answers."""

from lope.version import __version__

__all__ = ["__version__"]
