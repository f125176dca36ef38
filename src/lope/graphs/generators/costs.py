"""Random costs of the synthetic computation graphs of Jeon et al. 2023 (openreview WL8FlAugqQ), section 4.3."""

from dataclasses import dataclass

import numpy as np

from lope.graphs.graph import Floats, Ints

# Weights fitted to the four graphs of this family that the Moccasin paper released; the rest is in the paper.
WEIGHTS = (0.3, 0.3, 0.3, 0.1)
MEANS = (0.5, 1.0, 3.0, 5.0)
DEVIATIONS = (0.5, 1.0, 1.0, 1.0)
MACHINE_SHARES = (1 / 6, 1 / 6, 2 / 3)


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs of n nodes: all [n]. Resources are 1; the paper's machines are one, one and four of types 0, 1 and 2."""

    durations: Floats
    machine_types: Ints
    output_bytes: Ints


def draw_costs(rng: np.random.Generator, num_nodes: int) -> Costs:
    """Sizes m from the positive part of a mixture of four Gaussians; 1000 m bytes, and a duration of 100 m + 1."""
    sizes = np.zeros(num_nodes)
    missing = np.arange(num_nodes)
    while len(missing):
        part = rng.choice(len(WEIGHTS), size=len(missing), p=WEIGHTS)
        sizes[missing] = rng.normal(np.take(MEANS, part), np.take(DEVIATIONS, part))
        missing = missing[sizes[missing] <= 0]
    machine_types = rng.choice(len(MACHINE_SHARES), size=num_nodes, p=MACHINE_SHARES).astype(np.int64)
    output_bytes = np.round(1000 * np.round(sizes, 2)).astype(np.int64)
    return Costs(np.round(100 * sizes) + 1, machine_types, output_bytes)
