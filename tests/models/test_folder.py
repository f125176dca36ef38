"""Hugging Face folders: where things are looked for, and what is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.models import families

from lope.core.errors import ModelError
from lope.models.folder import Folder


@pytest.fixture
def folder(tiny: Callable[[str], Any], tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(tiny("qwen2-tied")[1], tmp_path / "spoiled"))


def change(path: Path, **values: Any) -> None:
    read = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**read, **values}))


def retensor(folder: Path, edit: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    tensors = {name: tensor.clone() for name, tensor in load_file(folder / "model.safetensors").items()}
    edit(tensors)
    save_file(tensors, folder / "model.safetensors")


def test_template_is_found_wherever_it_is_kept(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    assert Folder(folder).speech().template is None
    change(folder / "chat_template.json", chat_template="in its own file")
    assert Folder(folder).speech().template.source == "in its own file"  # type: ignore[union-attr]
    several = [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "by name"}]
    change(folder / "tokenizer_config.json", chat_template=several)
    assert Folder(folder).speech().template.source == "by name"  # type: ignore[union-attr]
    change(folder / "tokenizer_config.json", chat_template="in the settings")
    assert Folder(folder).speech().template.source == "in the settings"  # type: ignore[union-attr]
    (folder / "chat_template.jinja").write_text("{{ bos_token }}")
    assert Folder(folder).speech().template.render([]) == "<|begin|>"  # type: ignore[union-attr]


def test_stop_tokens_are_those_of_the_generation_config(folder: Path) -> None:
    change(folder / "generation_config.json", eos_token_id=[5, 7])
    assert Folder(folder).speech().stop_tokens == {1, 5, 7}
    change(folder / "generation_config.json", eos_token_id=3)
    assert Folder(folder).speech().stop_tokens == {1, 3}
    (folder / "generation_config.json").unlink()
    change(folder / "config.json", eos_token_id=4)
    assert Folder(folder).speech().stop_tokens == {1, 4}


def test_a_tied_head_that_is_written_out_too_is_left_aside(folder: Path) -> None:
    retensor(folder, lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"] + 1}))
    assert "lm_head.weight" not in Folder(folder).checkpoint().shapes


def test_frequencies_of_old_checkpoints_are_left_aside(folder: Path) -> None:
    retensor(folder, lambda t: t.update({"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(8)}))
    Folder(folder).checkpoint()


NORM, HEAD = "model.layers.1.input_layernorm.weight", "lm_head.weight"


SPOILED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no config": (lambda f: (f / "config.json").unlink(), "is not a model folder: it has no config.json"),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "has no tokenizer.json"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), r"has neither model\.safetensors nor"),
    "pickle": (
        lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"),
        "is a pickle, which is never loaded",
    ),
    "empty weights": (lambda f: (f / "model.safetensors").write_bytes(b""), "is not a whole safetensors file"),
    "other format": (lambda f: (f / "model.safetensors").write_bytes(b"GGUF" * 100), "is not a whole safetensors file"),
    "cut short": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-1000]),
        "is not a whole safetensors file",
    ),
    "bad index": (lambda f: change(f / "model.safetensors.index.json", weight_map=3), "has no weight_map"),
    "index leads outside": (
        lambda f: change(f / "model.safetensors.index.json", weight_map={"a": "../elsewhere.safetensors"}),
        r"'\.\./elsewhere\.safetensors' is not a file beside it",
    ),
    "missing shard": (
        lambda f: change(f / "model.safetensors.index.json", weight_map={"a": "model-2.safetensors"}),
        r"model-2\.safetensors: is missing",
    ),
    "missing tensor": (lambda f: retensor(f, lambda t: t.pop(NORM)), f"tensor {NORM} is missing"),
    "wrong shape": (
        lambda f: retensor(f, lambda t: t.update({NORM: torch.ones(65)})),
        rf"{NORM} has shape \[65\], not \[64\]",
    ),
    "extra tensor": (
        lambda f: retensor(f, lambda t: t.update({"x.y": torch.ones(1)})),
        "tensor x.y does not belong to a Qwen2",
    ),
    "missing head": (lambda f: change(f / "config.json", tie_word_embeddings=False), f"tensor {HEAD} is missing"),
    "absurd layers": (
        lambda f: change(f / "config.json", num_hidden_layers=10**9),
        "are too few for 1000000000 layers",
    ),
    "too many layers": (
        lambda f: change(f / "config.json", num_hidden_layers=2),
        "model.layers.2.* does not belong to a Qwen2",
    ),
    "wrong vocabulary": (lambda f: change(f / "config.json", vocab_size=7), r"embed_tokens\.weight has shape"),
    "other architecture": (
        lambda f: change(f / "config.json", architectures=["Gemma3ForCausalLM"]),
        "'Gemma3ForCausalLM' is not supported",
    ),
    "stop token no id": (
        lambda f: change(f / "generation_config.json", eos_token_id="x"),
        "eos_token_id must be an id or a list of ids",
    ),
    "stop token beyond": (
        lambda f: change(f / "generation_config.json", eos_token_id=9999),
        "stop token 9999 is not among the",
    ),
}


@pytest.mark.parametrize("case", list(SPOILED))
def test_what_cannot_be_loaded_is_one_clear_error(folder: Path, case: str) -> None:
    spoil, message = SPOILED[case]
    Folder(folder).checkpoint()
    spoil(folder)
    with pytest.raises(ModelError, match=message) as caught:
        Folder(folder).checkpoint()
    assert "\n" not in str(caught.value)


def test_a_tokenizer_larger_than_the_embedding_is_refused(folder: Path) -> None:
    raw = families.tokenizer()
    raw.add_tokens([f"<extra {number}>" for number in range(5)])
    raw.save(str(folder / "tokenizer.json"))
    with pytest.raises(ModelError, match=r"the tokenizer has \d+ tokens, the embedding only"):
        Folder(folder).checkpoint()
