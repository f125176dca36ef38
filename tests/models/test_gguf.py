"""GGUF files: the header against the gguf package's own reader, every quantisation against its dequantiser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from tests.models import families

from lope.core.errors import ModelError
from lope.models.gguf_config import decoder_config
from lope.models.gguf_file import GgufFile
from lope.models.gguf_header import GgufHeader
from lope.models.gguf_tensors import GgufTensors


def readable_kinds() -> list[gguf.GGMLQuantizationType]:
    kinds = []
    for kind in gguf.GGMLQuantizationType:
        try:
            gguf.dequantize(np.zeros((1, gguf.GGML_QUANT_SIZES[kind][1]), dtype=np.uint8), kind)
        except NotImplementedError:
            continue
        kinds.append(kind)
    return kinds


def one_tensor(path: Path, data: np.ndarray[Any, Any], kind: gguf.GGMLQuantizationType) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("token_embd.weight", data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("name", ["llama3", "qwen3"])
def test_header_says_what_the_gguf_package_reads(name: str, tiny: Callable[[str], Any]) -> None:
    path = tiny(name)[2]
    header, reader = GgufHeader.read(path), gguf.GGUFReader(path)
    own = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    assert header.metadata == own
    assert {info.name: (info.shape, info.kind, info.offset) for info in header.tensors.values()} == {
        info.name: (tuple(reversed(info.shape.tolist())), info.tensor_type.value, info.data_offset)
        for info in reader.tensors
    }


@pytest.mark.parametrize("kind", readable_kinds(), ids=lambda kind: kind.name)
def test_every_quantisation_is_undone_as_gguf_does(kind: gguf.GGMLQuantizationType, tmp_path: Path) -> None:
    block, width = gguf.GGML_QUANT_SIZES[kind]
    rows, blocks = 5, 3
    generator = np.random.default_rng(kind.value)
    data = generator.integers(0, 100, (rows, blocks * width), dtype=np.uint8)
    data = data.view(np.float32) if kind == gguf.GGMLQuantizationType.F32 else data
    data = data.view(np.float16) if kind == gguf.GGMLQuantizationType.F16 else data
    path = one_tensor(tmp_path / "one.gguf", data, kind)
    tensors = GgufTensors(GgufHeader.read(path), {})
    expected = torch.from_numpy(gguf.dequantize(data, kind).reshape(rows, blocks * block))
    assert torch.equal(torch.nan_to_num(tensors["model.embed_tokens.weight"]), torch.nan_to_num(expected))


def test_a_tensor_of_many_pieces_is_dequantised_whole(tmp_path: Path) -> None:
    kind = gguf.GGMLQuantizationType.Q4_1
    values = np.random.default_rng(0).standard_normal((1100, 544)).astype(np.float32)  # two pieces and a bit
    data = gguf.quantize(values, kind)
    path = one_tensor(tmp_path / "one.gguf", data, kind)
    found = GgufTensors(GgufHeader.read(path), {})["model.embed_tokens.weight"]
    assert torch.equal(found, torch.from_numpy(gguf.dequantize(data, kind)))


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.01, 0.05, 0.1, 0.5, 0.99, 0.99999])
def test_a_file_cut_short_is_one_clear_error(share: float, tiny: Callable[[str], Any], tmp_path: Path) -> None:
    whole = tiny("llama2")[2].read_bytes()
    path = tmp_path / "short.gguf"
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(ModelError, match=r"short\.gguf: .*(cut short|not a GGUF file)"):
        GgufFile(path).checkpoint()


def test_damaged_headers_never_do_worse_than_a_clear_error(tiny: Callable[[str], Any], tmp_path: Path) -> None:
    whole = bytearray(tiny("qwen2")[2].read_bytes())
    generator = np.random.default_rng(0)
    path = tmp_path / "damaged.gguf"
    errors = []
    for _ in range(150):
        damaged = bytearray(whole)
        for place in generator.integers(0, 14_000, 3):
            damaged[place] = generator.integers(0, 256)
        path.write_bytes(damaged)
        try:
            GgufFile(path).checkpoint()
        except ModelError as error:
            errors.append(str(error))
    assert len(errors) > 20
    assert not [error for error in errors if "\n" in error]


def test_unknown_architecture_names_the_known_ones(tiny: Callable[[str], Any], tmp_path: Path) -> None:
    path = families.save_gguf("llama2", tiny("llama2")[0], tmp_path / "x.gguf", architecture="gemma3")
    with pytest.raises(ModelError, match=r"'gemma3' is not supported \(there are: llama, qwen2, qwen3\)"):
        GgufFile(path).checkpoint()


def test_unknown_quantisation_is_named(tmp_path: Path) -> None:
    path = one_tensor(tmp_path / "x.gguf", np.zeros((4, 40), dtype=np.uint8), gguf.GGMLQuantizationType.Q8_1)
    with pytest.raises(ModelError, match=r"token_embd\.weight has quantisation type Q8_1"):
        GgufTensors(GgufHeader.read(path), {})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("split.count", 3, "is one part of several; join them first"),
        ("llama.expert_count", 8, "mixtures of experts are not supported"),
        ("llama.rope.scaling.type", "su", r"RoPE scaling 'su' is not supported \(there are: default, linear"),
        ("llama.rope.dimension_count", 8, "8 rotated: not supported"),
        ("llama.attention.head_count", [4, 4, 2], "'llama.attention.head_count' is list, not int"),
        ("llama.block_count", 0, "llama.block_count is 0, not a positive number"),
    ],
)
def test_what_is_not_built_is_named(key: str, value: Any, message: str, tiny: Callable[[str], Any]) -> None:
    header = GgufHeader.read(tiny("llama2")[2])
    changed = GgufHeader(header.path, header.size, {**header.metadata, key: value}, header.tensors)
    with pytest.raises(ModelError, match=message):
        decoder_config(changed, None)


def test_sliding_window_caps_the_context(tiny: Callable[[str], Any], tmp_path: Path) -> None:
    header = GgufHeader.read(tiny("mistral")[2])
    metadata = {**header.metadata, "llama.attention.sliding_window": 100}
    capped = GgufHeader(header.path, header.size, metadata, header.tensors)
    assert decoder_config(header, None).context == families.CONTEXT
    assert decoder_config(capped, None).context == 100
