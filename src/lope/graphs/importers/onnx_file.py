"""Graphs from ONNX files: an operator is a node, its outputs are one block, initializers are weights."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto

from lope.core.checks import at_least
from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph
from lope.graphs.importers.storages import Storages

# Operators whose result onnxruntime lays over their first input.
VIEWS = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"}


@dataclass(frozen=True)
class OnnxProgram:
    """A graph, and for each of its nodes the places in `model.graph.node` of the operators that it stands for.

    `members[v]` is empty for a graph input, else the operator and then the views of its result. `constants` are the
    places of the operators that make or reshape weights.
    """

    graph: Graph
    members: tuple[tuple[int, ...], ...]
    constants: tuple[int, ...]


@dataclass(frozen=True)
class OnnxImporter:
    """Reads `.onnx` files; `dynamic` is the size of every dimension that the file leaves open."""

    dynamic: int | None = None

    def __post_init__(self) -> None:
        if self.dynamic is not None:
            at_least("dynamic", self.dynamic, 1)

    def read(self, path: Path) -> Graph:
        """The graph of a model. Raises GraphError on what is no ONNX file, has subgraphs or has open dimensions."""
        return self.program(path).graph

    def program(self, path: Path) -> OnnxProgram:
        """The graph, and which operators its nodes stand for."""
        try:
            model = onnx.load(path, load_external_data=False)
        except (OSError, DecodeError, ValueError) as error:
            raise GraphError(f"{path}: not an ONNX file: {error}") from None
        if not model.graph.output:
            raise GraphError(f"{path}: not an ONNX file, or one without outputs")
        for node in model.graph.node:
            if any(item.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for item in node.attribute):
                raise GraphError(
                    f"{path}: operator {_name(node)!r} ({node.op_type}) has a subgraph; only flat graphs can be ordered"
                )
        return _program(str(path), model, value_bytes(str(path), model, self.dynamic))


def value_bytes(where: str, model: ModelProto, dynamic: int | None) -> dict[str, int]:
    """Bytes of every value whose shape ONNX can infer; open dimensions get the size `dynamic`, if one is given."""
    sized = ModelProto()
    sized.CopyFrom(model)
    if dynamic is not None:
        del sized.graph.value_info[:]
        for info in sized.graph.output:
            info.type.tensor_type.ClearField("shape")
        for info in sized.graph.input:
            for dimension in info.type.tensor_type.shape.dim:
                if not dimension.HasField("dim_value"):
                    dimension.dim_value = dynamic
    try:
        sized = onnx.shape_inference.infer_shapes(sized, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        raise GraphError(f"{where}: the shapes do not fit together: {str(error).splitlines()[0]}") from None
    found = {}
    for info in (*sized.graph.input, *sized.graph.value_info, *sized.graph.output):
        tensor = info.type.tensor_type
        dimensions = [item.dim_value if item.HasField("dim_value") else -1 for item in tensor.shape.dim]
        if info.type.HasField("tensor_type") and tensor.HasField("shape") and min(dimensions, default=0) >= 0:
            found[info.name] = _element_bits(tensor.elem_type) * int(np.prod(dimensions, dtype=np.int64)) // 8
    return found


def _program(where: str, model: ModelProto, sizes: dict[str, int]) -> OnnxProgram:
    storages = Storages(where)
    members: list[list[int]] = []
    constants: list[int] = []
    for tensor in (*model.graph.initializer, *(sparse.values for sparse in model.graph.sparse_initializer)):
        storages.weight(tensor.name)
    for info in model.graph.input:
        if not storages.knows(info.name):
            storages.run(info.name, reads=(), results=[info.name], output_bytes=_size(where, info.name, sizes))
            members.append([])
    for place, node in enumerate(model.graph.node):
        reads, results = list(filter(None, node.input)), list(filter(None, node.output))
        if node.op_type == "Constant":
            constants.append(place)
            storages.weight(results[0])
        elif node.op_type in VIEWS and all(storages.knows(other) and storages.is_weight(other) for other in reads[1:]):
            owner = storages.view(results[0], reads[0])
            (constants if owner is None else members[owner]).append(place)
        else:
            taken = sum(_size(where, result, sizes) for result in results)
            storages.run(_name(node), reads=reads, results=results, output_bytes=taken)
            members.append([place])
    for info in model.graph.output:
        storages.keep(info.name)
    graph = storages.graph(model.graph.name or where)
    return OnnxProgram(graph, tuple(tuple(group) for group in members), tuple(constants))


def _size(where: str, value: str, sizes: dict[str, int]) -> int:
    if value not in sizes:
        raise GraphError(
            f"{where}: the size of {value!r} is not fixed; export with fixed shapes, or give one size for all open "
            "dimensions (--dynamic)"
        )
    return sizes[value]


def _name(node: NodeProto) -> str:
    return str(node.name or next(filter(None, node.output), node.op_type))


def _element_bits(elem_type: int) -> int:
    if elem_type in (TensorProto.INT4, TensorProto.UINT4):
        return 4
    if elem_type == TensorProto.STRING:
        return 8 * 16
    return 8 * int(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(elem_type)).itemsize)
