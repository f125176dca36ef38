"""A calibration at one batch size and about one context length, looked up by the nodes of a round."""

from collections.abc import Sequence

from lope.core.cost import Calibration

# contexts this near to each other share a table
_BUCKET = 64


class RoundCosts:
    """Costs of rounds of `requests` requests.

    passes: [nodes] seconds of a round without drafting; passes[0] is a plain round.
    """

    def __init__(self, calibration: Calibration, requests: int, context: int, depth: int) -> None:
        self._key = (requests, context // _BUCKET)
        middle = self._key[1] * _BUCKET + _BUCKET // 2
        most = requests * calibration.nodes[depth]
        self.passes = [calibration.seconds(requests + n, middle) + calibration.overhead for n in range(most + 1)]
        self.plain = self.passes[0]
        self.drafting = [calibration.draft_seconds(level) for level in range(depth + 1)]
        self._requests = requests
        self._nodes = calibration.nodes[: depth + 1]

    def fits(self, requests: int, context: int) -> bool:
        """Whether these are the costs of such a round."""
        return self._key == (requests, context // _BUCKET)

    def could_pay(self, slowdown: float) -> bool:
        """Whether drafts that are always accepted whole would beat plain decoding."""
        plain = self._requests / self.plain if self.plain > 0.0 else float("inf")
        return any(
            self._requests * (1 + depth)
            > plain * (self.passes[self._requests * nodes] + slowdown * self.drafting[depth]) * (1.0 + 1e-9)
            for depth, nodes in enumerate(self._nodes)
            if depth
        )

    def extra(self, nodes: int, depth: int, slowdown: float) -> float:
        """Seconds beyond a plain round that a draft costs, accepted or not."""
        return self.passes[nodes] - self.plain + slowdown * self.drafting[depth]

    def expected(self, nodes: int, likely: float, depth: int, slowdown: float) -> float:
        """Expected seconds where only `likely` of `nodes` nodes are expected to be drafted."""
        share = likely / nodes if nodes else 0.0
        return self.plain + share * (self.passes[nodes] - self.plain) + slowdown * self.drafting[depth]


def deepest(parents: Sequence[int]) -> int:
    """Depth of a draft's deepest node."""
    depths: list[int] = []
    for parent in parents:
        depths.append(1 if parent < 0 else depths[parent] + 1)
    return max(depths, default=0)
