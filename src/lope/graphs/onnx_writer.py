"""Writes an ONNX model with its operators in another order; nothing else of the file changes."""

from pathlib import Path

import onnx
from numpy.typing import ArrayLike

from lope.graphs.errors import GraphError
from lope.graphs.importers.onnx_file import OnnxProgram


def write_reordered_onnx(source: Path, program: OnnxProgram, order: ArrayLike, target: Path) -> None:
    """Write the model in `source` to `target` with its operators in `order` [n] of `program`'s nodes.

    Operators that only make weights come first; a view follows the operator whose result it names. A runtime may sort
    operators by itself; what it makes of the order is its own affair.

    Raises GraphError for what is no order of the graph, or a file that can't be written.
    """
    steps = program.graph.check_order(order)
    places = [*program.constants, *(place for node in steps.tolist() for place in program.members[node])]
    model = onnx.load(source)
    operators = list(model.graph.node)
    if sorted(places) != list(range(len(operators))):
        raise GraphError(f"{source}: this graph was not read from this file")
    del model.graph.node[:]
    model.graph.node.extend(operators[place] for place in places)
    try:
        onnx.save(model, target)
    except OSError as error:
        raise GraphError(f"{target}: {error.strerror or error}") from None
