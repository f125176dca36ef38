"""What the table of policies names."""

from collections.abc import Callable
from typing import Protocol

from lope.core.cost import Calibration
from lope.core.protocols import Policy


class PolicySettings(Protocol):
    """Frozen settings that become the policy of one engine."""

    def attach(self, calibration: Callable[[], Calibration]) -> Policy:
        """The policy. Whoever calls `calibration` gets this machine's costs, which may have to be measured first."""
