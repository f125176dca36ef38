"""A computation graph: what each node costs, and which nodes must be finished before which."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lope.graphs.errors import GraphError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Graph:
    """A directed acyclic graph of operations. Build one with `Graph.build`; all arrays are read-only.

    names           n strings, all different
    edges           [num_edges, 2] pairs (from, to) of node numbers, sorted, each once: `to` runs after `from`
    carries         [num_edges] true where `to` uses the result of `from`, false where it only has to run later
    durations       [n] time a node runs, in any one unit
    resources       [n] whole units of its machine's capacity that a running node holds
    machine_types   [n] the machine type (0, 1, ...) that a node needs
    output_bytes    [n] bytes that a node's result takes from when it starts to after its last consumer
    scratch_bytes   [n] bytes that a node needs only while it runs
    kept            [n] true where the result lives to the end of the run (a graph output)
    """

    name: str
    names: tuple[str, ...]
    edges: Ints
    carries: Bools
    durations: Floats
    resources: Ints
    machine_types: Ints
    output_bytes: Ints
    scratch_bytes: Ints
    kept: Bools

    @classmethod
    def build(
        cls,
        edges: ArrayLike,
        *,
        order_edges: ArrayLike = (),
        num_nodes: int | None = None,
        name: str = "graph",
        names: Sequence[str] | None = None,
        durations: ArrayLike | None = None,
        resources: ArrayLike | None = None,
        machine_types: ArrayLike | None = None,
        output_bytes: ArrayLike | None = None,
        scratch_bytes: ArrayLike | None = None,
        kept: ArrayLike | None = None,
    ) -> "Graph":
        """Check the parts and put a graph together; `order_edges` carry no result.

        What is left out is 0; resources are 1 and `kept` are the nodes that come before no other.
        The number of nodes is `num_nodes`, or that of the first of `names` and the per-node lists that is given.
        Raises GraphError on a cycle (names one), an unknown node, a wrong length, a negative or non-finite number.
        """
        lists = [item for item in (names, durations, output_bytes, resources, machine_types) if item is not None]
        count = num_nodes if num_nodes is not None else len(lists[0]) if lists else None  # type: ignore[arg-type]
        if count is None:
            raise GraphError(f"{name}: give num_nodes, names or a list with one entry per node")
        pairs, carries = _join_edges(_read_edges(name, edges, count), _read_edges(name, order_edges, count))
        consumed = np.zeros(count, dtype=bool)
        consumed[pairs[:, 0]] = True
        graph = cls(
            name,
            _read_names(name, names, count),
            pairs,
            carries,
            _read_numbers(name, "durations", durations, count, 0, np.float64),
            _read_numbers(name, "resources", resources, count, 1, np.int64),
            _read_numbers(name, "machine_types", machine_types, count, 0, np.int64),
            _read_numbers(name, "output_bytes", output_bytes, count, 0, np.int64),
            _read_numbers(name, "scratch_bytes", scratch_bytes, count, 0, np.int64),
            _read_numbers(name, "kept", kept, count, False, np.bool_) if kept is not None else ~consumed,
        )
        arrays: list[NDArray[Any]] = [graph.edges, graph.durations, graph.resources, graph.machine_types]
        for array in [*arrays, graph.carries, graph.output_bytes, graph.scratch_bytes, graph.kept]:
            array.flags.writeable = False
        _ = graph.topological_order
        return graph

    @property
    def num_nodes(self) -> int:
        """How many nodes there are; 0 is allowed."""
        return len(self.names)

    @property
    def num_edges(self) -> int:
        """How many edges there are, each pair once."""
        return len(self.edges)

    @cached_property
    def successor_starts(self) -> Ints:
        """[n + 1]: node v's successors are `successor_nodes[successor_starts[v] : successor_starts[v + 1]]`."""
        return _starts(self.edges[:, 0], self.num_nodes)

    @cached_property
    def successor_nodes(self) -> Ints:
        """[num_edges] successors of node 0, then of node 1, ..., each list ascending."""
        return np.ascontiguousarray(self.edges[:, 1])

    @cached_property
    def predecessor_starts(self) -> Ints:
        """[n + 1]: where each node's predecessors begin in `predecessor_nodes`."""
        return _starts(self.edges[:, 1], self.num_nodes)

    @cached_property
    def predecessor_nodes(self) -> Ints:
        """[num_edges] predecessors of node 0, then of node 1, ..., each list ascending."""
        nodes: Ints = self.edges[np.argsort(self.edges[:, 1], kind="stable"), 0]
        return nodes

    @cached_property
    def successor_lists(self) -> list[list[int]]:
        """The successors of every node as Python lists: quick to walk one node at a time."""
        return _lists(self.successor_starts, self.successor_nodes)

    @cached_property
    def predecessor_lists(self) -> list[list[int]]:
        """The predecessors of every node as Python lists."""
        return _lists(self.predecessor_starts, self.predecessor_nodes)

    @cached_property
    def use_edges(self) -> Ints:
        """[num_uses, 2] the edges along which a result is used, sorted."""
        uses: Ints = self.edges if self.carries.all() else self.edges[self.carries]
        return uses

    @cached_property
    def used_lists(self) -> list[list[int]]:
        """The nodes whose results every node uses, as Python lists."""
        if self.carries.all():
            return self.predecessor_lists
        uses = self.use_edges[np.argsort(self.use_edges[:, 1], kind="stable")]
        return _lists(_starts(uses[:, 1], self.num_nodes), uses[:, 0])

    def successors(self, node: int) -> Ints:
        """The nodes that must run after `node`, ascending."""
        return self.successor_nodes[self.successor_starts[node] : self.successor_starts[node + 1]]

    def predecessors(self, node: int) -> Ints:
        """The nodes that must run before `node`, ascending."""
        return self.predecessor_nodes[self.predecessor_starts[node] : self.predecessor_starts[node + 1]]

    @cached_property
    def in_degrees(self) -> Ints:
        """[n] number of predecessors."""
        return np.diff(self.predecessor_starts)

    @cached_property
    def out_degrees(self) -> Ints:
        """[n] number of successors."""
        return np.diff(self.successor_starts)

    @cached_property
    def topological_order(self) -> Ints:
        """[n] one order in which every node follows all that it uses (Kahn 1962, first come first served).

        Raises GraphError that names the nodes of one cycle where there is no such order.
        """
        waiting = self.in_degrees.tolist()
        successors = self.successor_lists
        order = [node for node, count in enumerate(waiting) if count == 0]
        for node in order:
            for successor in successors[node]:
                waiting[successor] -= 1
                if waiting[successor] == 0:
                    order.append(successor)
        if len(order) < self.num_nodes:
            raise GraphError(f"{self.name}: the graph has a cycle: {' -> '.join(self._cycle(waiting))}")
        return np.array(order, dtype=np.int64)

    def check_order(self, order: ArrayLike) -> Ints:
        """`order` as [n] node numbers. Raises GraphError unless it has every node once, each after all that it uses."""
        found = np.asarray(order, dtype=np.int64)
        if found.shape != (self.num_nodes,) or not np.array_equal(np.sort(found), np.arange(self.num_nodes)):
            raise GraphError(f"{self.name}: an order must name each of the {self.num_nodes} nodes once")
        position = np.empty(self.num_nodes, dtype=np.int64)
        position[found] = np.arange(self.num_nodes)
        wrong = np.flatnonzero(position[self.edges[:, 0]] >= position[self.edges[:, 1]])
        if len(wrong):
            first, then = (self.names[node] for node in self.edges[wrong[0]])
            raise GraphError(f"{self.name}: the order runs {then!r} before {first!r}, which has to come first")
        return found

    def renumbered(self, order: ArrayLike) -> "Graph":
        """The same graph with its nodes numbered by `order`. Raises GraphError for what is no order of the graph."""
        steps = self.check_order(order)
        position = np.empty(self.num_nodes, dtype=np.int64)
        position[steps] = np.arange(self.num_nodes)
        return Graph.build(
            position[self.use_edges],
            order_edges=position[self.edges[~self.carries]],
            name=self.name,
            names=[self.names[node] for node in steps.tolist()],
            durations=self.durations[steps],
            resources=self.resources[steps],
            machine_types=self.machine_types[steps],
            output_bytes=self.output_bytes[steps],
            scratch_bytes=self.scratch_bytes[steps],
            kept=self.kept[steps],
        )

    def _cycle(self, waiting: Sequence[int]) -> list[str]:
        """The names along one cycle, first name repeated; every node that still waits has a predecessor that waits."""
        node = next(node for node, count in enumerate(waiting) if count > 0)
        seen: dict[int, int] = {}
        path: list[int] = []
        while node not in seen:
            seen[node] = len(path)
            path.append(node)
            node = next(other for other in self.predecessor_lists[node] if waiting[other] > 0)
        loop = [node, *reversed(path[seen[node] :])]
        shown = [self.names[step] for step in loop]
        return shown if len(shown) <= 12 else [*shown[:6], f"({len(shown) - 11} more)", *shown[-5:]]


def _starts(column: Ints, num_nodes: int) -> Ints:
    starts = np.zeros(num_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(column, minlength=num_nodes), out=starts[1:])
    return starts


def _lists(starts: Ints, nodes: Ints) -> list[list[int]]:
    flat, bounds = nodes.tolist(), starts.tolist()
    return [flat[bounds[i] : bounds[i + 1]] for i in range(len(bounds) - 1)]


def _read_edges(name: str, edges: ArrayLike, num_nodes: int) -> Ints:
    try:
        pairs = np.asarray(edges, dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        raise GraphError(f"{name}: edges must be pairs of node numbers") from None
    if pairs.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise GraphError(f"{name}: edges must be pairs of node numbers, not an array of shape {pairs.shape}")
    outside = (pairs < 0) | (pairs >= num_nodes)
    if outside.any():
        first = pairs[outside.any(axis=1)][0].tolist()
        raise GraphError(f"{name}: edge {first} names a node that does not exist (there are {num_nodes})")
    # One number per pair: np.unique over rows is twenty times slower.
    keys = np.unique(pairs[:, 0] * num_nodes + pairs[:, 1])
    return np.stack([keys // num_nodes, keys % num_nodes], axis=1)


def _join_edges(uses: Ints, orders: Ints) -> tuple[Ints, Bools]:
    """All pairs, sorted, each once, and which of them carry a result: one that is in both lists does."""
    pairs = np.concatenate([uses, orders])
    if not len(orders):
        return pairs, np.ones(len(pairs), dtype=bool)
    pairs, places = np.unique(pairs, axis=0, return_index=True)
    return pairs, places < len(uses)


def _read_names(name: str, names: Sequence[str] | None, num_nodes: int) -> tuple[str, ...]:
    found = tuple(str(number) for number in range(num_nodes)) if names is None else tuple(map(str, names))
    if len(found) != num_nodes:
        raise GraphError(f"{name}: there are {len(found)} names for {num_nodes} nodes")
    if len(set(found)) != num_nodes:
        twice = next(item for index, item in enumerate(found) if item in found[:index])
        raise GraphError(f"{name}: two nodes are called {twice!r}")
    return found


def _read_numbers(name: str, what: str, given: ArrayLike | None, num_nodes: int, default: Any, dtype: Any) -> Any:
    """`given` as a fresh [num_nodes] array of `dtype`: finite, not negative and, for whole numbers, whole."""
    if given is None:
        return np.full(num_nodes, default, dtype=dtype)
    try:
        numbers = np.asarray(given)
        if numbers.dtype.kind == "U":
            raise TypeError
        if numbers.dtype.kind not in "biuf":
            numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise GraphError(f"{name}: {what} must be numbers, one per node") from None
    if numbers.shape != (num_nodes,):
        raise GraphError(f"{name}: {what} has shape {numbers.shape}, there are {num_nodes} nodes")
    bad = ~np.isfinite(numbers) | (numbers < 0)
    if dtype is np.int64:
        bad |= (numbers != np.floor(numbers)) | (numbers >= 2**62)
    if bad.any():
        node = int(np.flatnonzero(bad)[0])
        kind = "a whole number of at least 0" if dtype is np.int64 else "a finite number of at least 0"
        raise GraphError(f"{name}: {what} of node {node} must be {kind}, not {numbers[node]}")
    return numbers.astype(dtype)
