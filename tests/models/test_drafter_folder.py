"""What is written is read again, and every fault of a drafter folder is one line that names it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.models.random_drafter import about, tensors, write
from torch import Tensor

from lope.core.errors import ModelError, RunError
from lope.models.drafter_folder import DrafterFolder, DrafterTarget, shapes

TARGET = DrafterTarget("tiny", "fingerprint", 97, 32, 4)
KINDS = ("standalone", "eagle")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("storage", ["float32", "bfloat16", "int8"])
def test_what_is_written_is_read(kind: str, storage: str, tmp_path: Path) -> None:
    said = about(kind, TARGET, storage=storage)
    wrote = tensors(said)
    DrafterFolder.write(tmp_path, said, wrote)
    folder = DrafterFolder.read(tmp_path)
    assert folder.path == tmp_path
    assert folder.about.document() == said.document()
    assert folder.about.decoder == said.decoder
    assert {name: tuple(tensor.shape) for name, tensor in folder.tensors.items()} == shapes(said)
    assert torch.equal(folder.tensors["kept"], wrote["kept"])
    for name, values in wrote.items():
        if values.dim() == 1:
            assert torch.equal(folder.tensors[name], values), name  # kept and norms: exact in every storage
            continue
        assert folder.tensors[name].dtype == torch.float32
        error = (folder.tensors[name] - values).abs()
        step = {
            "float32": torch.zeros(()),
            "bfloat16": values.abs() / 2**8,  # 8 digits, rounded to nearest
            "int8": values.abs().amax(dim=1, keepdim=True) / 127 / 2 * (1 + 1e-5),
        }[storage]
        assert bool((error <= step).all()), name


def test_int8_lies_on_disk_as_told(tmp_path: Path) -> None:
    said = about("eagle", TARGET, storage="int8")
    wrote = tensors(said)
    wrote["fc.weight"][3] = 0.0
    DrafterFolder.write(tmp_path, said, wrote)
    held = load_file(tmp_path / "drafter.safetensors")
    assert held["kept"].dtype == torch.int64
    assert held["norm.weight"].dtype == torch.float32
    assert held["fc.weight"].dtype == torch.int8
    assert held["fc.weight.scale"].shape == (32, 1)
    assert held["fc.weight.scale"].dtype == torch.float32
    largest = held["fc.weight"].abs().amax(dim=1)
    assert largest.tolist() == [0 if row == 3 else 127 for row in range(32)]
    assert torch.equal(DrafterFolder.read(tmp_path).tensors["fc.weight"][3], torch.zeros(96))


def test_writing_again_replaces_the_drafter_and_nothing_else(tmp_path: Path) -> None:
    said = about("standalone", TARGET)
    write(tmp_path, said, seed=1)
    (tmp_path / "README.md").write_text("a card")
    write(tmp_path, said, seed=2)
    assert torch.equal(DrafterFolder.read(tmp_path).tensors["norm.weight"], tensors(said, 2)["norm.weight"])
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["README.md", "drafter.json", "drafter.safetensors"]


def _document(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        document = json.loads((folder / "drafter.json").read_text())
        change(document)
        (folder / "drafter.json").write_text(json.dumps(document))

    return apply


def _tensors(change: Callable[[dict[str, Tensor]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        held = load_file(folder / "drafter.safetensors")
        change(held)
        save_file(held, folder / "drafter.safetensors")

    return apply


def _truncate(folder: Path) -> None:
    path = folder / "drafter.safetensors"
    path.write_bytes(path.read_bytes()[:-10])


NAN = float("nan")
FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no drafter.json": (lambda f: (f / "drafter.json").unlink(), "is not a drafter folder: it has no drafter.json"),
    "no JSON": (lambda f: (f / "drafter.json").write_text("{"), "is not JSON"),
    "no end": (lambda f: (f / "drafter.json").write_text("[" * 100_000), "is not JSON"),
    "no object": (lambda f: (f / "drafter.json").write_text("[]"), "holds no JSON object"),
    "no tensors": (lambda f: (f / "drafter.safetensors").unlink(), "drafter.safetensors: is missing"),
    "truncated": (_truncate, "is not a whole safetensors file"),
    "other format": (_document(lambda d: d.update(format=2)), "has format 2, this version of lope reads 1"),
    "other kind": (_document(lambda d: d.update(kind="medusa")), "kind must be standalone or eagle, not 'medusa'"),
    "no target": (_document(lambda d: d.pop("target")), "target must be an object, not None"),
    "no fingerprint": (_document(lambda d: d["target"].pop("tokenizer")), "tokenizer must be a text, not None"),
    "size 0": (_document(lambda d: d["decoder"].update(num_heads=0)), "num_heads must be a positive whole number"),
    "size text": (_document(lambda d: d["decoder"].update(context="many")), "context must be a positive whole number"),
    "context 3": (_document(lambda d: d["decoder"].update(context=3)), "context must be at least 4, not 3"),
    "no theta": (_document(lambda d: d["decoder"].pop("rope_theta")), "rope_theta must be a positive number, not None"),
    "uneven heads": (_document(lambda d: d["decoder"].update(num_heads=5)), "5 heads do not share 2 of 8"),
    "layers without end": (_document(lambda d: d["decoder"].update(num_layers=10**12)), "num_layers must be at most"),
    "two layers": (_document(lambda d: d["decoder"].update(num_layers=2)), "has one layer of the target's hidden size"),
    "other width": (_document(lambda d: d["decoder"].update(hidden_size=16)), "hidden size 32, not 1 of 16"),
    "layers fall": (_document(lambda d: d.update(layers=[2, 0, 4])), "layers must rise between 0 and the target's 4"),
    "layers beyond": (_document(lambda d: d.update(layers=[0, 2, 5])), "layers must rise between 0 and the target's 4"),
    "layers text": (_document(lambda d: d.update(layers=["2"])), "layers must be a list of whole numbers"),
    "other storage": (_document(lambda d: d.update(storage="int4")), "storage must be float32 or bfloat16 or int8"),
    "wrong storage": (_document(lambda d: d.update(storage="bfloat16")), "fc.weight is stored as F32, not as torch.bf"),
    "no recipe": (_document(lambda d: d.update(recipe=3)), "recipe must be an object, not 3"),
    "operating point": (_document(lambda d: d.update(operating_point=[])), "operating_point must be an object"),
    "missing tensor": (_tensors(lambda t: t.pop("norm.weight")), "tensor norm.weight is missing"),
    "missing kept": (_tensors(lambda t: t.pop("kept")), "tensor kept is missing"),
    "one more": (_tensors(lambda t: t.update(more=torch.zeros(1))), "tensor more does not belong to this eagle"),
    "wrong shape": (
        _tensors(lambda t: t.update({"lm_head.weight": torch.zeros(40, 31)})),
        "tensor lm_head.weight has shape [40, 31], not [40, 32]",
    ),
    "kept matrix": (_tensors(lambda t: t.update(kept=t["kept"][None])), "tensor kept has shape [1, 40], not [K]"),
    "kept nothing": (_tensors(lambda t: t.update(kept=t["kept"][:0])), "the head keeps 0 of the target's 97 tokens"),
    "kept int32": (_tensors(lambda t: t.update(kept=t["kept"].int())), "tensor kept is stored as I32"),
    "kept falls": (_tensors(lambda t: t.update(kept=t["kept"].flip(0))), "tensor kept must rise"),
    "kept twice": (_tensors(lambda t: t["kept"].__setitem__(1, t["kept"][0])), "tensor kept must rise"),
    "kept negative": (_tensors(lambda t: t["kept"].__setitem__(0, -1)), "names token -1, but the target has 97"),
    "kept beyond": (_tensors(lambda t: t["kept"].__setitem__(-1, 97)), "names token 97, but the target has 97"),
    "not a number": (_tensors(lambda t: t["fc.weight"].__setitem__((0, 0), NAN)), "fc.weight holds numbers that are"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_one_line(fault: str, tmp_path: Path) -> None:
    spoil, line = FAULTS[fault]
    spoil(write(tmp_path / "drafter", about("eagle", TARGET)))
    with pytest.raises(ModelError) as raised:
        DrafterFolder.read(tmp_path / "drafter")
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)
    assert str(tmp_path / "drafter") in str(raised.value)


def test_a_standalone_drafter_reads_no_layers(tmp_path: Path) -> None:
    write(tmp_path, about("standalone", TARGET))
    _document(lambda document: document.update(layers=[1]))(tmp_path)
    with pytest.raises(ModelError, match="reads no layers of the target"):
        DrafterFolder.read(tmp_path)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"norm.weight": torch.ones(31)}, "tensor norm.weight is \\[31\\], not \\[32\\]"),
        ({"fc.weight": torch.full((32, 96), float("inf"))}, "fc.weight holds numbers that are not finite"),
        ({"kept": torch.arange(40).flip(0)}, "kept must rise"),
        ({"kept": torch.arange(40, dtype=torch.int32)}, "kept holds torch.int32, not token ids"),
    ],
)
def test_only_a_drafter_can_be_written(change: dict[str, Tensor], line: str, tmp_path: Path) -> None:
    said = about("eagle", TARGET)
    with pytest.raises(ModelError, match=line):
        DrafterFolder.write(tmp_path / "drafter", said, tensors(said) | change)
    assert not (tmp_path / "drafter").exists()


def test_a_place_that_is_no_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = about("eagle", TARGET)
    with pytest.raises(RunError, match="file: the drafter cannot be written: "):
        DrafterFolder.write(tmp_path / "file", said, tensors(said))
