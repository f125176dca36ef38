"""Machines: how many units of each machine type there are, and whether a graph can run on them at all."""

from dataclasses import dataclass

import numpy as np

from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph, Ints


@dataclass(frozen=True)
class Machines:
    """`capacities[m]` units of machine type m; a running node holds `resources` units of its own type.

    Raises GraphError where there is no type or a capacity is not a positive whole number.
    """

    capacities: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.capacities:
            raise GraphError("machines: give at least one capacity")
        for kind, capacity in enumerate(self.capacities):
            if int(capacity) != capacity or not 0 < capacity < 2**62:
                raise GraphError(f"machines: type {kind} must have a positive whole capacity, not {capacity}")

    @classmethod
    def read(cls, text: str) -> "Machines":
        """Read `4` (one type of capacity 4) or `1,1,4` (types 0, 1, 2). Raises GraphError on anything else."""
        try:
            return cls(tuple(int(item) for item in text.split(",")))
        except ValueError as error:
            if isinstance(error, GraphError):
                raise
            raise GraphError(f"machines: write whole capacities as 1,1,4, not {text!r}") from None

    @property
    def array(self) -> Ints:
        """[num_types] the capacities."""
        return np.array(self.capacities, dtype=np.int64)

    def check(self, graph: Graph) -> None:
        """Raise GraphError that names the first node whose type is missing or whose resource exceeds the capacity."""
        if graph.num_nodes == 0:
            raise GraphError(f"{graph.name}: the graph is empty, there is nothing to schedule")
        unknown = np.flatnonzero(graph.machine_types >= len(self.capacities))
        if len(unknown):
            node = int(unknown[0])
            raise GraphError(
                f"{graph.name}: node {graph.names[node]!r} needs machine type {graph.machine_types[node]}, "
                f"there are {len(self.capacities)} (numbered from 0)"
            )
        too_big = np.flatnonzero(graph.resources > self.array[graph.machine_types])
        if len(too_big):
            node = int(too_big[0])
            raise GraphError(
                f"{graph.name}: node {graph.names[node]!r} holds {graph.resources[node]} units of machine type "
                f"{graph.machine_types[node]}, whose capacity is {self.capacities[graph.machine_types[node]]}"
            )
