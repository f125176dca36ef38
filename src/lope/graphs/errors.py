"""What can be wrong with a computation graph, its file, or what is asked of it."""

from lope.core.errors import UsageError


class GraphError(UsageError):
    """A graph that cannot be used: a cycle, a missing attribute, a negative size, a file that is not one."""
