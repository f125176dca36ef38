"""Every family, from both formats, through the public loader: weights equal, logits those of transformers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from tests.models import families
from tests.models.logits import all_logits
from torch import Tensor

from lope.models.folder import Folder
from lope.models.gguf_file import GgufFile
from lope.models.loading import load

TOKENS = 120
NAMES = list(families.FAMILIES)


def expected_weights(model: Any) -> dict[str, Tensor]:
    weights = dict(model.state_dict())
    if model.config.tie_word_embeddings:
        del weights["lm_head.weight"]
    return weights


def reference(model: Any) -> tuple[list[int], Tensor]:
    torch.manual_seed(1)
    ids = torch.randint(0, model.config.vocab_size, (1, TOKENS))
    with torch.no_grad():
        return ids[0].tolist(), model(ids).logits[0]


@pytest.mark.parametrize("name", NAMES)
def test_tensors_are_those_that_were_written(name: str, tiny: Callable[[str], Any]) -> None:
    model, folder, file = tiny(name)
    expected = expected_weights(model)
    for checkpoint in (Folder(folder).checkpoint(), GgufFile(file).checkpoint()):
        assert set(checkpoint.shapes) == set(expected)
        for key, value in expected.items():
            assert torch.equal(checkpoint.tensors[key], value), key


@pytest.mark.parametrize("name", NAMES)
def test_quantised_tensors_are_what_gguf_makes_of_them(
    name: str, tiny: Callable[[str], Any], quantised: Callable[[str], Path]
) -> None:
    expected = expected_weights(tiny(name)[0])
    checkpoint = GgufFile(quantised(name)).checkpoint()
    kind = gguf.GGMLQuantizationType.Q8_0
    for key, value in expected.items():
        if value.dim() == 2:
            value = torch.from_numpy(gguf.dequantize(gguf.quantize(value.numpy(), kind), kind))
        assert torch.equal(checkpoint.tensors[key], value), key


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("name", NAMES)
def test_logits_are_those_of_transformers(name: str, tiny: Callable[[str], Any]) -> None:
    model, folder, file = tiny(name)
    ids, expected = reference(model)
    for place in (folder, file):
        found = all_logits(load(str(place), dtype="float32"), ids)
        assert (found - expected).abs().max() < 1e-4


@pytest.mark.usefixtures("kernels")
def test_logits_of_quantised_weights_are_those_of_transformers(
    tiny: Callable[[str], Any], quantised: Callable[[str], Path]
) -> None:
    path = quantised("llama3")
    model = families.hugging_face("llama3")
    weights = GgufFile(path).checkpoint().tensors
    model.load_state_dict({key: weights[key] for key in model.state_dict()})
    ids, expected = reference(model)
    assert (all_logits(load(str(path), dtype="float32"), ids) - expected).abs().max() < 1e-4
    assert (reference(tiny("llama3")[0])[1] - expected).abs().max() > 1e-2, "quantising changed nothing: no evidence"


@pytest.mark.parametrize("name", ["llama3", "mistral"])
def test_planted_rows_left_interleaved_are_noticed(name: str, tiny: Callable[[str], Any], tmp_path: Path) -> None:
    model, _, _ = tiny(name)
    ids, expected = reference(model)
    wrong = families.save_gguf(name, model, tmp_path / "wrong.gguf", permute=False)
    assert (all_logits(load(str(wrong), dtype="float32"), ids) - expected).abs().max() > 0.1


def test_planted_missing_rope_scaling_is_noticed(tiny: Callable[[str], Any], tmp_path: Path) -> None:
    model, _, _ = tiny("llama3")
    ids, expected = reference(model)
    unscaled = families.hugging_face("llama3")
    unscaled.config.rope_parameters = {"rope_type": "default", "rope_theta": 500.0}
    wrong = families.save_gguf("llama3", unscaled, tmp_path / "wrong.gguf")
    assert (all_logits(load(str(wrong), dtype="float32"), ids) - expected).abs().max() > 0.1


def test_many_shards_are_one_model(tiny: Callable[[str], Any], tmp_path: Path) -> None:
    model, _, _ = tiny("llama2")
    folder = families.save_folder(model, tmp_path / "shards", shard="60KB")
    assert len(list(folder.glob("*.safetensors"))) > 3
    checkpoint = Folder(folder).checkpoint()
    for key, value in expected_weights(model).items():
        assert torch.equal(checkpoint.tensors[key], value), key


def test_bfloat16_runs_what_transformers_runs_in_bfloat16(tiny: Callable[[str], Any]) -> None:
    model, folder, _ = tiny("qwen3")
    ids, expected = reference(model)
    loaded = load(str(folder), dtype="bfloat16")
    assert loaded.backend.dtype == "bfloat16"
    assert (all_logits(loaded, ids) - expected).abs().mean() < 0.1
