"""What a PyTorch operator does to storages, read from its schema: views, writes, fresh results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from lope.graphs.importers.storages import Storages

# Their schemas say "may be a view": they are one where no bytes have to move.
SOMETIMES_VIEWS = {"reshape", "reshape_as", "flatten", "contiguous", "to", "type_as", "unflatten", "view_as"}


@dataclass(frozen=True)
class Call:
    """One operator call: the values in each argument place of its schema, its results and their bytes together."""

    name: str
    schema: Any | None
    arguments: Sequence[Sequence[str]]
    results: Sequence[str]
    output_bytes: int


def record(storages: Storages, call: Call, *, moves_bytes: Callable[[str, str], bool]) -> None:
    """Add a call to `storages`; `moves_bytes(base, result)` tells whether a sometimes-view has to copy here.

    An operator without a schema is taken to read all its arguments and to write fresh memory.
    """
    written, base = _aliasing(call)
    reads = [value for place, values in enumerate(call.arguments) if place not in written for value in values]
    if written:
        changed = [value for place in written for value in call.arguments[place]]
        storages.run(call.name, reads=[*reads, *changed], results=(), output_bytes=0, writes=changed)
        for place, result in enumerate(call.results):
            storages.view(result, changed[min(place, len(changed) - 1)])
    elif base is not None and not (_is_sometimes(call) and moves_bytes(base, call.results[0])):
        for result in call.results:
            storages.view(result, base)
    else:
        storages.run(call.name, reads=reads, results=call.results, output_bytes=call.output_bytes)


def schema_named(target: str) -> Any | None:
    """The schema of `torch.ops.namespace.name.overload`; None where this PyTorch has no such operator."""
    parts = target.split(".")
    if parts[:2] != ["torch", "ops"]:
        return None
    found: Any = torch.ops
    for part in parts[2:]:
        found = getattr(found, part, None)
    return getattr(found, "_schema", None)


def schema_of_method(name: str) -> Any | None:
    """The schema of the first `aten` operator of that name, for `torch.name(...)` and `tensor.name(...)`."""
    packet = getattr(torch.ops.aten, name, None)
    return getattr(packet, packet.overloads()[0])._schema if packet is not None and packet.overloads() else None


def _aliasing(call: Call) -> tuple[list[int], str | None]:
    """The argument places that a call writes, and the value that its results are a view of (None: of nothing)."""
    if call.schema is None:
        return [], None
    infos = [argument.alias_info for argument in call.schema.arguments][: len(call.arguments)]
    given = [(place, info) for place, info in enumerate(infos) if info is not None and call.arguments[place]]
    written = [place for place, info in given if info.is_write]
    shared: set[str] = set()
    for result in call.schema.returns:
        if result.alias_info is not None:
            shared |= result.alias_info.before_set
    # A list of views (split, unbind) is written `Tensor(a -> *)`: the set after the call differs.
    bases = [place for place, info in given if info.before_set & shared or info.after_set != info.before_set]
    return written, call.arguments[bases[0]][0] if bases else None


def _is_sometimes(call: Call) -> bool:
    return call.schema is not None and call.schema.name.split("::")[-1] in SOMETIMES_VIEWS
