"""Exports the real graphs of the memory table from random weights, as the JSON files beside this script.

Needs timm and torchvision beside torch; lope needs neither. In an environment of its own:

    python -m venv real && real/bin/pip install torch timm torchvision && real/bin/pip install -e .
    real/bin/python benchmarks/graphs/memory/export_real.py [NAME ...]
"""

import sys
import warnings
from pathlib import Path

import torch
from torch.fx.experimental.proxy_tensor import make_fx

# torchvision built for another torch asks for operators that it does not bring itself.
SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
for operator in ("nms", "qnms"):
    torch.library.define(f"torchvision::{operator}", SIGNATURE)

import timm  # noqa: E402
import torchvision  # noqa: E402

from lope.graphs.graph import Graph  # noqa: E402
from lope.graphs.graph_json import write_graph_json  # noqa: E402
from lope.graphs.importers.torch_fx import graph_from_fx  # noqa: E402

INFERENCE = {"nasnetalarge": 331, "pnasnet5large": 331}
TRAINING = {"mobilenet_v2": 224, "vit_b_16": 224}


def inference_graph(name: str, size: int) -> Graph:
    """torch.export of a timm model at batch 1; the image is the only input."""
    model = timm.create_model(name, pretrained=False).eval()
    program = torch.export.export(model, (torch.zeros(1, 3, size, size),))
    signature = program.graph_signature.input_specs
    weights = [spec.arg.name for spec in signature if spec.kind.name != "USER_INPUT"]
    return graph_from_fx(program.graph_module, weights=weights, name=name)


def training_graph(name: str, size: int) -> Graph:
    """One step of SGD at batch 1: forward, backward, then all weights updated in place, as optimizer.step does."""
    model = torchvision.models.get_model(name, weights=None).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    weights = {key: value.detach() for key, value in model.named_parameters()}
    buffers = dict(model.named_buffers())

    def step(weights: dict, buffers: dict, image: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        leaves = {key: value.detach().requires_grad_() for key, value in weights.items()}
        scores = torch.func.functional_call(model, {**leaves, **buffers}, (image,))
        loss = torch.nn.functional.cross_entropy(scores, label)
        gradients = torch.autograd.grad(loss, list(leaves.values()))
        with torch.no_grad():
            for weight, gradient in zip(weights.values(), gradients, strict=True):
                weight.sub_(gradient, alpha=0.1)
        return loss

    example = (weights, buffers, torch.zeros(1, 3, size, size), torch.zeros(1, dtype=torch.long))
    traced = make_fx(step, tracing_mode="fake")(*example)
    placeholders = [node.name for node in traced.graph.nodes if node.op == "placeholder"]
    return graph_from_fx(traced, weights=placeholders[: len(weights) + len(buffers)], name=f"{name}-training")


def main() -> None:
    """Export the models named on the command line, else all."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    folder = Path(__file__).parent
    for name in sys.argv[1:] or [*INFERENCE, *TRAINING]:
        graph = inference_graph(name, INFERENCE[name]) if name in INFERENCE else training_graph(name, TRAINING[name])
        write_graph_json(graph, folder / f"{graph.name}.json.gz")
        print(graph.name, graph.num_nodes, "nodes", graph.num_edges, "edges", flush=True)


if __name__ == "__main__":
    main()
