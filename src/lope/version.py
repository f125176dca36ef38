"""The version of the package, read once from its own metadata."""

from importlib.metadata import version

__version__ = version("lope")
