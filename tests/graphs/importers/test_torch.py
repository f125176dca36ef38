import json
import zipfile

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.shape_prop import ShapeProp

from lope.graphs import IMPORTERS
from lope.graphs.errors import GraphError
from lope.graphs.graph import Graph
from lope.graphs.importers.torch_fx import graph_from_fx

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


class Small(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 8, 3)
        self.normal = torch.nn.BatchNorm2d(8)
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mapped = torch.relu_(self.normal(self.convolution(image)))
        scores = self.linear(mapped.mean((2, 3)))
        left, _ = torch.split(scores, 2, dim=1)
        return left.reshape(-1) + scores.reshape(-1)[:4], mapped


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    program = torch.export.export(Small().eval(), (torch.zeros(2, 3, 6, 6),))
    path = tmp_path_factory.mktemp("export") / "small.pt2"
    torch.export.save(program, path)
    return program, path


def described(graph: Graph) -> dict[str, tuple[int, bool, list[str]]]:
    names = graph.names
    return {
        names[v]: (int(graph.output_bytes[v]), bool(graph.kept[v]), [names[u] for u in graph.predecessors(v).tolist()])
        for v in range(graph.num_nodes)
    }


# By hand: 2 x 8 x 4 x 4 floats are 1024 bytes; relu_ writes into the batch norm's result; split makes views; the first
# reshape, of a view with gaps, has to copy, the second one not.
SMALL = {
    "image": (864, False, []),
    "conv2d": (1024, False, ["image"]),
    "batch_norm": (1024, True, ["conv2d"]),
    "relu_": (0, False, ["batch_norm"]),
    "mean": (64, False, ["batch_norm", "relu_"]),
    "linear": (32, False, ["mean"]),
    "reshape": (16, False, ["linear"]),
    "add": (16, True, ["linear", "reshape"]),
}


def test_a_saved_program_by_hand(exported):
    assert described(IMPORTERS.make("torch_export").read(exported[1])) == SMALL


def test_the_graph_module_says_the_same_as_the_file(exported):
    program, _ = exported
    inputs = program.graph_signature.input_specs
    weights = [spec.arg.name for spec in inputs if spec.kind.name != "USER_INPUT"]
    assert described(graph_from_fx(program.graph_module, weights=weights)) == SMALL


def test_order_edges_keep_reads_before_writes():
    def step(weight: torch.Tensor, data: torch.Tensor) -> torch.Tensor:
        leaf = weight.detach().requires_grad_()
        loss = torch.relu(data @ leaf).sum()
        (gradient,) = torch.autograd.grad(loss, leaf)
        weight.sub_(gradient, alpha=0.1)
        return loss

    traced = make_fx(step, tracing_mode="fake")(torch.zeros(4, 5), torch.zeros(3, 4))
    graph = graph_from_fx(traced, weights=["weight_1"])
    update = graph.names.index("sub_")
    assert graph.output_bytes[update] == 0
    kinds = {
        graph.names[u]: bool(c) for (u, v), c in zip(graph.edges.tolist(), graph.carries, strict=True) if v == update
    }
    # The product of the forward pass reads the weight, so it runs before the update, which does not use its result.
    assert kinds == {"mm": False, "mm_1": True}


def test_symbolic_traces_after_shape_propagation():
    class Plain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(6, 4)

        def forward(self, data: torch.Tensor) -> torch.Tensor:
            return self.linear(torch.relu(data).view(2, 6)).chunk(2, 1)[0]

    traced = torch.fx.symbolic_trace(Plain())
    with pytest.raises(GraphError, match="no shape"):
        graph_from_fx(traced)
    ShapeProp(traced).propagate(torch.zeros(3, 4))
    graph = graph_from_fx(traced)
    assert described(graph) == {"data": (48, False, []), "relu": (48, False, ["data"]), "linear": (32, True, ["relu"])}


def test_weights_must_be_placeholders(exported):
    with pytest.raises(GraphError, match="no placeholder 'nothing'"):
        graph_from_fx(exported[0].graph_module, weights=["nothing"])


class Choice(torch.nn.Module):
    def forward(self, data: torch.Tensor) -> torch.Tensor:
        return torch.cond(data.sum() > 0, torch.sin, torch.cos, (data,))


def test_subgraphs_are_refused(tmp_path):
    program = torch.export.export(Choice(), (torch.zeros(3),))
    torch.export.save(program, tmp_path / "choice.pt2")
    with pytest.raises(GraphError, match="subgraph"):
        IMPORTERS.make("torch_export").read(tmp_path / "choice.pt2")
    with pytest.raises(GraphError, match="subgraph"):
        graph_from_fx(program.graph_module)


def test_open_dimensions_are_refused(tmp_path):
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(torch.nn.Linear(3, 4), (torch.zeros(2, 3),), dynamic_shapes={"input": {0: batch}})
    torch.export.save(program, tmp_path / "open.pt2")
    with pytest.raises(GraphError, match="not fixed"):
        IMPORTERS.make("torch_export").read(tmp_path / "open.pt2")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 and no more"])
def test_files_that_are_no_archive(tmp_path, data):
    (tmp_path / "bad.pt2").write_bytes(data)
    with pytest.raises(GraphError, match=r"not a torch\.export archive"):
        IMPORTERS.make("torch_export").read(tmp_path / "bad.pt2")


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({}, r"torch\.export\.save"),
        ({"m/models/model.json": "{}"}, r"not a torch\.export archive"),
        ({"m/models/model.json": "no json"}, r"not a torch\.export archive"),
        ({"m/models/model.json": json.dumps({"graph_module": {"graph": []}})}, "does not know"),
    ],
)
def test_archives_of_something_else(tmp_path, members, said):
    with zipfile.ZipFile(tmp_path / "bad.pt2", "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    with pytest.raises(GraphError, match=said):
        IMPORTERS.make("torch_export").read(tmp_path / "bad.pt2")
