"""Graphs from `torch.fx`: make_fx traces, torch.export graph modules, symbolic traces after shape propagation."""

import math
import operator
from collections.abc import Collection
from typing import Any

import torch
from torch import fx

from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph
from lope.graphs.importers.aten import Call, record, schema_of_method
from lope.graphs.importers.storages import Storages


def graph_from_fx(program: fx.GraphModule, *, weights: Collection[str] = (), name: str = "fx") -> Graph:
    """The graph of a traced program; the placeholders named in `weights` lie in memory whatever the order.

    Every node needs its shape in `meta["val"]` (make_fx, torch.export) or `meta["tensor_meta"]` (ShapeProp). Raises
    GraphError where it is missing or has an open dimension, and on subgraphs.
    """
    nodes = list(program.graph.nodes)
    unknown = set(weights) - {node.name for node in nodes if node.op == "placeholder"}
    if unknown:
        raise GraphError(f"{name}: there is no placeholder {min(unknown)!r}")
    storages = Storages(name)
    metas = {node.name: _meta(node) for node in nodes}
    for node in nodes:
        if node.op == "placeholder" and node.name not in weights:
            storages.run(node.name, reads=(), results=[node.name], output_bytes=_bytes(name, node))
        elif node.op in ("placeholder", "get_attr"):
            if isinstance(getattr(program, str(node.target), None), fx.GraphModule):
                raise GraphError(f"{name}: {node.name!r} is a subgraph; only flat graphs can be ordered")
            storages.weight(node.name)
        elif node.op == "output":
            for used in node.all_input_nodes:
                storages.keep(used.name)
        elif node.target is operator.getitem and not isinstance(_meta(node.args[0]), torch.Tensor):
            storages.view(node.name, node.args[0].name)
        else:
            record(storages, _call(name, node), moves_bytes=lambda base, result: _moves(metas[base], metas[result]))
    return storages.graph(name)


def _call(where: str, node: fx.Node) -> Call:
    target = node.target
    schema = getattr(target, "_schema", None)
    if schema is None and node.op in ("call_method", "call_function"):
        schema = schema_of_method(target if isinstance(target, str) else getattr(target, "__name__", ""))
    places: list[Any] = list(node.args)
    if schema is None:
        places += node.kwargs.values()
    else:
        places += [node.kwargs.get(argument.name) for argument in schema.arguments[len(places) :]]
    arguments = [_values(place) for place in places]
    return Call(node.name, schema, arguments, [node.name], _bytes(where, node))


def _values(argument: Any) -> list[str]:
    found: list[str] = []
    fx.map_arg(argument, lambda node: found.append(node.name))
    return found


def _meta(node: Any) -> Any:
    if not isinstance(node, fx.Node):
        return None
    found = node.meta.get("val")
    return node.meta.get("tensor_meta") if found is None else found


def _bytes(where: str, node: fx.Node) -> int:
    """Bytes of all tensors that a node returns."""
    meta = _meta(node)
    if meta is None and "val" not in node.meta:
        raise GraphError(f"{where}: {node.name!r} has no shape; trace with make_fx or torch.export, or run ShapeProp")
    return _tensor_bytes(where, node.name, meta)


def _tensor_bytes(where: str, name: str, meta: Any) -> int:
    if hasattr(meta, "dtype") and hasattr(meta, "shape"):
        if not all(isinstance(size, int) for size in meta.shape):
            raise GraphError(f"{where}: the size of {name!r} is not fixed; trace with fixed shapes")
        return int(math.prod(meta.shape) * meta.dtype.itemsize)
    if isinstance(meta, tuple | list):
        return sum(_tensor_bytes(where, name, item) for item in meta)
    return 0


def _moves(base: Any, result: Any) -> bool:
    """Must a reshape or conversion copy? Not if the base is contiguous and keeps its type."""
    if getattr(base, "dtype", None) != getattr(result, "dtype", None):
        return True
    stride = base.stride if isinstance(getattr(base, "stride", None), tuple) else base.stride()
    expected = 1
    for size, step in zip(reversed(base.shape), reversed(stride), strict=True):
        if size != 1 and step != expected:
            return True
        expected *= size
    return False
