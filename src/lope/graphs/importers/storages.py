"""From a program over values to a graph over storages: views merged, weights apart, writes in their place."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph


@dataclass
class Storage:
    """One block of memory: the node that allocates it (None: a weight), who last wrote it and who has read it since."""

    owner: int | None
    writer: int | None = None
    readers: list[int] = field(default_factory=list)


class Storages:
    """Takes the operations of a program in any order that runs, and builds its graph.

    A value is a name for a storage. A view gets no node: it is one more name. An operation that writes into a storage
    is a node of 0 bytes that runs after all who read the old content and before all who read the new one.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._storage: dict[str, Storage] = {}
        self._names: list[str] = []
        self._bytes: list[int] = []
        self._uses: set[tuple[int, int]] = set()
        self._orders: set[tuple[int, int]] = set()
        self._kept: set[int] = set()

    def weight(self, value: str) -> None:
        """A value that lies in memory whatever the order."""
        self._storage[value] = Storage(None)

    def view(self, value: str, base: str) -> int | None:
        """One more name for the storage of `base`; returns the node that owns it, None for a weight."""
        self._storage[value] = self._find(base)
        return self._storage[value].owner

    def run(
        self, name: str, *, reads: Iterable[str], results: Iterable[str], output_bytes: int, writes: Iterable[str] = ()
    ) -> int:
        """An operation: its `results` share one new storage of `output_bytes`. Returns its node number."""
        node = len(self._names)
        self._names.append(name)
        self._bytes.append(output_bytes)
        for storage in [self._find(value) for value in reads]:
            self._after(storage, node)
            storage.readers.append(node)
        for storage in [self._find(value) for value in writes]:
            self._after(storage, node)
            self._orders.update((reader, node) for reader in storage.readers if reader != node)
            storage.writer, storage.readers = node, []
        own = Storage(node)
        self._storage.update((result, own) for result in results)
        return node

    def keep(self, value: str) -> None:
        """The value is an output of the program."""
        owner = self._find(value).owner
        if owner is not None:
            self._kept.add(owner)

    def knows(self, value: str) -> bool:
        """Has anything made this value?"""
        return value in self._storage

    def is_weight(self, value: str) -> bool:
        """Is the value a weight, or a view of one?"""
        return self._find(value).owner is None

    def graph(self, name: str) -> Graph:
        """The graph of all operations so far; two of one name get numbers."""
        counts: dict[str, int] = {}
        names = []
        for wanted in self._names:
            counts[wanted] = counts.get(wanted, 0) + 1
            names.append(wanted if counts[wanted] == 1 else f"{wanted}#{counts[wanted]}")
        kept = np.zeros(len(names), dtype=bool)
        kept[sorted(self._kept)] = True
        return Graph.build(
            sorted(self._uses),
            order_edges=sorted(self._orders),
            name=name,
            names=names,
            output_bytes=self._bytes,
            kept=kept,
        )

    def _after(self, storage: Storage, node: int) -> None:
        if storage.owner is not None:
            self._uses.add((storage.owner, node))
        if storage.writer is not None:
            self._orders.add((storage.writer, node))

    def _find(self, value: str) -> Storage:
        if value not in self._storage:
            raise GraphError(f"{self._where}: {value!r} is used before anything makes it")
        return self._storage[value]
