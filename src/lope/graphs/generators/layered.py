"""Layered graphs of Gagrani et al. 2022 (arXiv 2207.05899), appendix A.

The procedure is recovered from two public re-implementations and checked on the four graphs that the Moccasin paper
(Bartan et al. 2023) released: `graphs_and_learning.md` in the project's notes, section 2.4.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from lope.core.checks import at_least, between
from lope.graphs.generators.costs import draw_costs
from lope.graphs.graph import Graph, Ints

SPREAD = 0.75
DENSITY = 0.2
SKIP_SHARE = 0.14


@dataclass(frozen=True)
class LayeredGraphs:
    """`count` graphs of `num_nodes` nodes, the source and the target among them."""

    num_nodes: int = 1000
    count: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("num_nodes", self.num_nodes, 4)
        at_least("count", self.count, 1)
        at_least("seed", self.seed, 0)

    def graphs(self) -> list[Graph]:
        """The graphs; graph k depends on (seed, k, num_nodes) alone."""
        return [
            layered_graph(np.random.default_rng([self.seed, k]), self.num_nodes, name=f"layered-{self.num_nodes}-{k}")
            for k in range(self.count)
        ]


def layered_graph(
    rng: np.random.Generator, num_nodes: int, *, width_factor: float | None = None, name: str = "layered"
) -> Graph:
    """One graph from node 0, the source, to the last, the target; `width_factor`: else from U(0.25, 0.5)."""
    at_least("num_nodes", num_nodes, 4)
    width = rng.uniform(0.25, 0.5) if width_factor is None else width_factor
    between("width_factor", width, 1e-3, 0.999)
    layers = draw_layers(rng, num_nodes, width)
    adjacent = np.concatenate([layer_edges(rng, upper, lower) for upper, lower in itertools.pairwise(layers)])
    skips = skip_edges(rng, layers[1:-1], math.ceil(len(adjacent) * SKIP_SHARE / (1 - SKIP_SHARE)))
    costs = draw_costs(rng, num_nodes)
    return Graph.build(
        np.concatenate([adjacent, skips]),
        num_nodes=num_nodes,
        name=name,
        durations=costs.durations,
        machine_types=costs.machine_types,
        output_bytes=costs.output_bytes,
    )


def draw_layers(rng: np.random.Generator, num_nodes: int, width: float) -> list[Ints]:
    """The node numbers of each layer: the source, inner layers of uniform sizes (the last cut short), the target."""
    num_layers = math.ceil(math.sqrt(num_nodes * (1 / width - 1)))
    mean = num_nodes / num_layers
    low, high = max(1, math.ceil(mean * (1 - SPREAD))), max(1, math.floor(mean * (1 + SPREAD)))
    starts = [0, 1]
    while starts[-1] < num_nodes - 1:
        starts.append(min(num_nodes - 1, starts[-1] + int(rng.integers(low, high + 1))))
    return [np.arange(start, end) for start, end in zip(starts, [*starts[1:], num_nodes], strict=True)]


def layer_edges(rng: np.random.Generator, upper: Ints, lower: Ints) -> Ints:
    """[num_edges, 2]: round(d n1 n2 + (1 - d) max(n1, n2)) edges, shared out evenly over the nodes of the larger layer.

    Each takes consecutive nodes of the smaller layer, centred where it stands itself.
    """
    small, big = sorted((upper, lower), key=len)
    total = round(DENSITY * len(small) * len(big) + (1 - DENSITY) * len(big))
    counts = np.full(len(big), total // len(big))
    counts[rng.permutation(len(big))[: total % len(big)]] += 1
    # ceil(place * (small - 1) / (big - 1)), in whole numbers.
    centres = -(-np.arange(len(big)) * (len(small) - 1) // max(1, len(big) - 1))
    firsts = np.clip(centres - counts // 2, 0, len(small) - counts)
    steps = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    edges = np.stack([small[np.repeat(firsts, counts) + steps], np.repeat(big, counts)], axis=1)
    return edges if small is upper else edges[:, ::-1]


def skip_edges(rng: np.random.Generator, layers: list[Ints], number: int) -> Ints:
    """At most `number` edges (doubles are dropped) from a layer to one at least two further, a little to the right."""
    last = len(layers) - 1
    found = set()
    for _ in range(number if last >= 2 else 0):
        start = int(rng.integers(0, last - 1))
        end = int(rng.integers(start + 2, last + 1))
        across = rng.uniform()
        target = min(across + 0.2 * rng.uniform(), 0.999)
        pair = layers[start][int(across * len(layers[start]))], layers[end][int(target * len(layers[end]))]
        found.add((int(pair[0]), int(pair[1])))
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
