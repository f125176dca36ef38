"""Graphs from `torch.export` programs saved as `.pt2`: only the JSON in the archive is read, nothing is unpickled."""

import math
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lope.core import json_reader
from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph
from lope.graphs.importers.aten import Call, record, schema_named
from lope.graphs.importers.storages import Storages

# Bytes of the scalar types of torch/_export/serde/schema.py, by their number there.
ITEM_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 2, 7: 4, 8: 8, 9: 4, 10: 8, 11: 16, 12: 1, 13: 2, 28: 2}
ITEM_BYTES |= dict.fromkeys((29, 30, 31, 32), 1)

# Inputs that lie in memory whatever the order.
WEIGHTS = {"parameter", "buffer", "tensor_constant", "custom_obj", "token", "constant_input"}


@dataclass(frozen=True)
class TorchExportImporter:
    """Reads `.pt2` archives that `torch.export.save` wrote."""

    def read(self, path: Path) -> Graph:
        """The graph of a program. Raises GraphError on other files, on subgraphs and on open dimensions."""
        try:
            with zipfile.ZipFile(path) as archive:
                name = next((item for item in archive.namelist() if item.endswith("models/model.json")), None)
                if name is None:
                    raise GraphError(f"{path}: no models/model.json inside; write the file with torch.export.save")
                module = json_reader.parsed(archive.read(name))["graph_module"]
        except (OSError, zipfile.BadZipFile, ValueError, KeyError) as error:
            if isinstance(error, GraphError):
                raise
            raise GraphError(f"{path}: not a torch.export archive: {error}") from None
        try:
            return _read(str(path), module)
        except (KeyError, TypeError, AttributeError) as error:
            raise GraphError(f"{path}: a torch.export format that this lope does not know: {error!r}") from None


def _read(where: str, module: dict[str, Any]) -> Graph:
    storages = Storages(where)
    metas: dict[str, Any] = module["graph"]["tensor_values"]
    for spec, given in zip(module["signature"]["input_specs"], module["graph"]["inputs"], strict=True):
        for value in _values(where, given):
            if set(spec) & WEIGHTS:
                storages.weight(value)
            else:
                storages.run(value, reads=(), results=[value], output_bytes=_bytes(where, value, metas))
    for node in module["graph"]["nodes"]:
        record(
            storages,
            _call(where, node, metas),
            moves_bytes=lambda base, result: _moves(metas.get(base), metas.get(result)),
        )
    for given in module["graph"]["outputs"]:
        for value in _values(where, given):
            storages.keep(value)
    return storages.graph(Path(where).stem)


def _call(where: str, node: dict[str, Any], metas: dict[str, Any]) -> Call:
    schema = schema_named(node["target"])
    given = {item["name"]: list(_values(where, item["arg"])) for item in node["inputs"]}
    results = [value for item in node["outputs"] for value in _values(where, item)]
    arguments = list(given.values())
    if schema is not None:
        arguments = [given.get(argument.name, []) for argument in schema.arguments]
    name = node.get("name") or (results[0] if results else node["target"].split(".")[-2])
    return Call(name, schema, arguments, results, sum(_bytes(where, value, metas) for value in results))


def _values(where: str, argument: Any) -> Iterator[str]:
    """The names of all tensors, and of all sizes computed at run time, in a serialised argument."""
    if isinstance(argument, list):
        for item in argument:
            yield from _values(where, item)
    elif isinstance(argument, dict):
        for kind, item in argument.items():
            if kind in ("as_graph", "as_hop_graph"):
                raise GraphError(f"{where}: the program has a subgraph; only flat graphs can be ordered")
            if kind in ("name", "as_name") and isinstance(item, str):
                yield item
            elif kind.startswith("as_"):
                yield from _values(where, item)


def _bytes(where: str, value: str, metas: dict[str, Any]) -> int:
    if value not in metas:
        return 0
    meta = metas[value]
    if not all("as_int" in size for size in meta["sizes"]):
        raise GraphError(f"{where}: the size of {value!r} is not fixed; export with fixed shapes")
    if meta["dtype"] not in ITEM_BYTES:
        raise GraphError(f"{where}: {value!r} has a number type that this lope does not know ({meta['dtype']})")
    return int(ITEM_BYTES[meta["dtype"]] * math.prod(size["as_int"] for size in meta["sizes"]))


def _moves(base: Any, result: Any) -> bool:
    """Must a reshape or conversion copy? Not if the base is contiguous and keeps its type."""
    if base is None or result is None or base["dtype"] != result["dtype"]:
        return True
    expected = 1
    for size, step in zip(reversed(base["sizes"]), reversed(base["strides"]), strict=True):
        if size["as_int"] != 1 and step["as_int"] != expected:
            return True
        expected *= size["as_int"]
    return False
