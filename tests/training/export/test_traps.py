"""Every trap, planted once in a folder that is right: the checker names it, and nothing else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from lope.core.errors import ModelError
from lope.models.drafter_folder import DrafterFolder
from lope.training.export.export import Export
from lope.training.export.trap_check import TrapCheck

IDS, NESTED = "eagle_aux_hidden_state_layer_ids", "eagle_config"
VLLM, SGLANG, LLAMA_CPP, SPECULATORS = "vLLM 0.33", "SGLang 0.5.23", "llama.cpp", "speculators 0.9"
ALL = {"plain": {VLLM, SGLANG, LLAMA_CPP}, "speculators": {VLLM, LLAMA_CPP, SPECULATORS}}
Edit = Callable[[dict[str, Any], dict[str, Tensor]], None]


@pytest.fixture
def folders(eagle: DrafterFolder, tmp_path: Path) -> dict[str, Path]:
    engines = {"plain": "sglang", "speculators": "vllm"}
    return {form: Export.of(eagle, engine, tmp_path / form).out for form, engine in engines.items()}


def spoil(folder: Path, edit: Edit) -> None:
    config = json.loads((folder / "config.json").read_text())
    tensors = {name: tensor.clone() for name, tensor in load_file(folder / "model.safetensors").items()}
    edit(config, tensors)
    (folder / "config.json").write_text(json.dumps(config))
    save_file({name: tensor.clone().contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")


def ids(offsets: Tensor) -> Tensor:
    return offsets + torch.arange(len(offsets))


def unsorted(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    turned = ids(tensors["d2t"]).flip(0)
    tensors["d2t"] = turned - torch.arange(len(turned))


def ids_without_marks(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    tensors["d2t"] = ids(tensors["d2t"])
    del tensors["t2d"]


def twice(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    tensors["d2t"][1] = tensors["d2t"][0] - 1
    del tensors["t2d"]


def beyond(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    tensors["d2t"][-1] = config.get("vocab_size", 0) + 1000
    del tensors["t2d"]


def stale(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    missing, present = (~tensors["t2d"]).nonzero()[0], tensors["t2d"].nonzero()[0]
    tensors["t2d"][missing], tensors["t2d"][present] = True, False


def two_firsts(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    tensors["midlayer.hidden_norm.weight"] = tensors["layers.0.hidden_norm.weight"]


def two_features(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    width = tensors["fc.weight"].shape[0]
    tensors["fc.weight"] = tensors["fc.weight"][:, : 2 * width]
    config[IDS], config[NESTED][IDS] = [1, 2], [0, 1]


def four_features(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    tensors["fc.weight"] = torch.cat([tensors["fc.weight"], tensors["fc.weight"][:, :64]], dim=1)


def put(*path: str, value: Any) -> Edit:
    def edit(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        place = config
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value

    return edit


def drop(*path: str) -> Edit:
    def edit(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        place = config
        for name in path[:-1]:
            place = place[name]
        del place[path[-1]]

    return edit


def tensor(name: str, change: Callable[[Tensor], Tensor]) -> Edit:
    def edit(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        tensors[name] = change(tensors[name])

    return edit


def without(*names: str) -> Edit:
    def edit(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        for name in names:
            del tensors[name]

    return edit


def extra(name: str, *shape: int) -> Edit:
    def edit(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        tensors[name] = torch.ones(shape)

    return edit


# form, what is planted, {trap: who falls into it}
PLANTED: dict[str, tuple[str, Edit, dict[str, set[str]]]] = {
    "no d2t": ("plain", without("d2t"), {"d2t missing": ALL["plain"]}),
    "no d2t, speculators": ("speculators", without("d2t"), {"d2t missing": {VLLM, LLAMA_CPP}}),
    "no t2d": ("plain", without("t2d"), {"t2d missing": {SPECULATORS}}),
    "ids for offsets": ("plain", tensor("d2t", ids), {"d2t holds ids": ALL["plain"]}),
    "ids for offsets, speculators": ("speculators", tensor("d2t", ids), {"d2t holds ids": ALL["speculators"]}),
    "ids and no t2d": (
        "plain",
        ids_without_marks,
        {"d2t holds ids": ALL["plain"], "t2d missing": {SPECULATORS}},
    ),
    "unsorted": ("plain", unsorted, {"d2t unsorted": {SPECULATORS}}),
    "a token twice": ("plain", twice, {"d2t names a token twice": {VLLM, LLAMA_CPP}, "t2d missing": {SPECULATORS}}),
    "beyond the vocabulary": (
        "plain",
        beyond,
        {"d2t out of range": ALL["plain"], "t2d missing": {SPECULATORS}},
    ),
    "rounded": ("plain", tensor("d2t", lambda d2t: d2t.float()), {"d2t no whole numbers": ALL["plain"]}),
    "short d2t": ("plain", tensor("d2t", lambda d2t: d2t[:-1]), {"d2t length": ALL["plain"]}),
    "one mark less": (
        "speculators",
        tensor("t2d", lambda t2d: t2d & (t2d.cumsum(0) > 1)),
        {"t2d sum": {SPECULATORS}},
    ),
    "short t2d": ("plain", tensor("t2d", lambda t2d: t2d[:-1]), {"t2d length": {SPECULATORS}}),
    "bytes for marks": ("plain", tensor("t2d", lambda t2d: t2d.to(torch.uint8)), {"t2d not bool": {SPECULATORS}}),
    "stale t2d": ("plain", stale, {"t2d against d2t": {SPECULATORS}}),
    "an embedding": ("plain", extra("embed_tokens.weight", 283, 64), {"embed_tokens present": {VLLM, LLAMA_CPP}}),
    "residual unsaid": ("plain", drop("norm_before_residual"), {"norm_before_residual missing": ALL["plain"]}),
    "residual unsaid, speculators": (
        "speculators",
        drop("norm_before_residual"),
        {"norm_before_residual missing": {VLLM}},
    ),
    "residual normed": ("plain", put("norm_before_residual", value=True), {"norm_before_residual true": {SGLANG}}),
    "residual normed, speculators": (
        "speculators",
        put("norm_before_residual", value=True),
        {"norm_before_residual true": {SGLANG}},
    ),
    "features normed": ("plain", put("fc_norm", value=True), {"fc_norm": {LLAMA_CPP}}),
    "norms of features": ("plain", extra("fc_norm.0.weight", 64), {"fc_norm": {LLAMA_CPP}}),
    "output normed": ("speculators", put("norm_output", value=True), {"norm_output": {LLAMA_CPP}}),
    "two layers": ("plain", put("num_hidden_layers", value=2), {"more than one layer": {LLAMA_CPP}}),
    "two features": (
        "plain",
        two_features,
        {"not three features": {LLAMA_CPP}},
    ),
    "two features, speculators": (
        "speculators",
        two_features,
        {"not three features": {LLAMA_CPP}, "feature count": {VLLM}},
    ),
    "a feature too many": (
        "plain",
        four_features,
        {"not three features": {LLAMA_CPP}, "feature count": {VLLM, SGLANG}},
    ),
    "layers at the top only": ("plain", drop(NESTED), {"layer ids only at the top": {SGLANG}}),
    "layers in eagle_config only": ("plain", drop(IDS), {"layer ids only in eagle_config": {VLLM, LLAMA_CPP}}),
    "unshifted": ("plain", put(NESTED, IDS, value=[0, 1, 2]), {"layer ids not shifted": {SGLANG}}),
    "layers out of order": (
        "plain",
        lambda config, tensors: config.update({IDS: [2, 1, 0], NESTED: {IDS: [1, 0, -1]}}),
        {"layer ids unsorted": {VLLM, SGLANG}},
    ),
    "after the last layer": (
        "speculators",
        lambda config, tensors: config.update({IDS: [1, 2, 3], NESTED: {IDS: [0, 1, 2]}}),
        {"layer ids out of range": ALL["speculators"]},
    ),
    "another head": ("plain", put("draft_vocab_size", value=199), {"draft_vocab_size mismatch": ALL["plain"]}),
    "draft_vocab_size unsaid": (
        "plain",
        drop("draft_vocab_size"),
        {"draft_vocab_size missing": {SGLANG, LLAMA_CPP}, "draft_vocab_size mismatch": ALL["plain"]},
    ),
    "draft_vocab_size unsaid, speculators": (
        "speculators",
        drop("draft_vocab_size"),
        {"draft_vocab_size missing": {SPECULATORS, LLAMA_CPP}, "draft_vocab_size mismatch": ALL["speculators"]},
    ),
    "no head": ("plain", without("lm_head.weight"), {"lm_head missing": ALL["plain"]}),
    "narrow projection": (
        "plain",
        tensor("layers.0.self_attn.q_proj.weight", lambda weight: weight[:, :64]),
        {"tensor shape": ALL["plain"]},
    ),
    "narrow fc": ("speculators", tensor("fc.weight", lambda weight: weight[:63]), {"tensor shape": ALL["speculators"]}),
    "narrow head": ("plain", tensor("lm_head.weight", lambda weight: weight[:, :63]), {"tensor shape": ALL["plain"]}),
    "flat fc": ("plain", tensor("fc.weight", lambda weight: weight.flatten()), {"tensor shape": ALL["plain"]}),
    "no norm": ("plain", without("norm.weight"), {"tensor missing": ALL["plain"]}),
    "a stranger": ("plain", extra("model.norm.weight", 64), {"unknown tensor": {VLLM}}),
    "both names": ("plain", two_firsts, {"two first layers": ALL["plain"]}),
    "another algorithm": (
        "speculators",
        put("speculators_model_type", value="eagle"),
        {"speculators_model_type": {VLLM, SPECULATORS}},
    ),
    "no algorithm": (
        "speculators",
        drop("speculators_model_type"),
        {"speculators_model_type": {VLLM, SPECULATORS}},
    ),
    "another layer": (
        "speculators",
        put("transformer_layer_config", "model_type", value="gemma3"),
        {"layer's model_type": {VLLM, SPECULATORS}},
    ),
    "no layer": (
        "speculators",
        drop("transformer_layer_config"),
        {"transformer_layer_config missing": {VLLM, SPECULATORS}},
    ),
    "nothing about speculation": (
        "speculators",
        drop("speculators_config"),
        {"speculators_config missing": {VLLM, SPECULATORS}},
    ),
    "no depth": (
        "speculators",
        put("speculators_config", "proposal_methods", value=[]),
        {"speculative_tokens missing": {VLLM, SPECULATORS}},
    ),
    "no verifier": (
        "speculators",
        put("speculators_config", "verifier", "name_or_path", value=None),
        {"verifier missing": {VLLM, SPECULATORS}},
    ),
}


@pytest.mark.parametrize("case", list(PLANTED))
def test_a_planted_trap_is_named(folders: dict[str, Path], case: str) -> None:
    form, edit, expected = PLANTED[case]
    assert TrapCheck.of(folders[form], num_layers=3).traps == ()
    spoil(folders[form], edit)
    check = TrapCheck.of(folders[form], num_layers=3)
    assert {trap.name: set(trap.loaders) for trap in check.traps} == expected
    assert len(check.traps) == len(expected)
    for trap in check.traps:
        assert trap.line.startswith(trap.name)
        assert "\n" not in trap.line
        assert len(trap.line) < 230


def test_the_name_of_the_older_form_is_read(folders: dict[str, Path]) -> None:
    def rename(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        for name in [name for name in tensors if name.startswith("layers.0.")]:
            tensors[name.replace("layers.0.", "midlayer.")] = tensors.pop(name)

    spoil(folders["plain"], rename)
    assert TrapCheck.of(folders["plain"], num_layers=3).traps == ()


def test_the_targets_own_embedding_is_no_trap(folders: dict[str, Path]) -> None:
    spoil(folders["plain"], extra("embed_tokens.weight", 283, 64))
    same, other = torch.ones(283, 64), torch.zeros(283, 64)
    assert TrapCheck.of(folders["plain"], embedding=same).traps == ()
    (trap,) = TrapCheck.of(folders["plain"], embedding=other).traps
    assert "differs from the target's embedding" in trap.says


def test_without_the_target_its_last_layer_is_unknown(folders: dict[str, Path]) -> None:
    spoil(folders["plain"], put(IDS, value=[1, 2, 3]))
    spoil(folders["plain"], put(NESTED, IDS, value=[0, 1, 2]))
    assert TrapCheck.of(folders["plain"]).traps == ()


def test_layers_that_everyone_takes_may_stand_at_one_place(folders: dict[str, Path]) -> None:
    spoil(folders["plain"], drop(NESTED))
    spoil(folders["plain"], put(IDS, value=[2, 15, 27]))
    assert TrapCheck.of(folders["plain"], num_layers=30).traps == ()
    assert [trap.name for trap in TrapCheck.of(folders["plain"]).traps] == ["layer ids only at the top"]


def test_heads_of_the_target(folders: dict[str, Path]) -> None:
    def untrimmed(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        for name in ("d2t", "t2d", "lm_head.weight"):
            del tensors[name]
        config["draft_vocab_size"] = None

    spoil(folders["plain"], untrimmed)
    assert TrapCheck.of(folders["plain"]).traps == ()  # all three take the target's head
    spoil(folders["plain"], put("draft_vocab_size", value=283))
    (trap,) = TrapCheck.of(folders["plain"]).traps
    assert (trap.name, trap.loaders) == ("lm_head missing", (SGLANG,))
    spoil(folders["plain"], extra("lm_head.weight", 283, 64))
    assert TrapCheck.of(folders["plain"]).traps == ()
    spoil(folders["plain"], put("draft_vocab_size", value=None))
    (trap,) = TrapCheck.of(folders["plain"]).traps
    assert (trap.name, trap.loaders) == ("own head unused", (SGLANG,))


def test_a_map_without_trimming_stops_vllm(folders: dict[str, Path]) -> None:
    def full(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        tensors["lm_head.weight"], config["draft_vocab_size"] = torch.ones(283, 64), 283
        tensors["d2t"], tensors["t2d"] = torch.zeros(283, dtype=torch.int64), torch.ones(283, dtype=torch.bool)

    spoil(folders["plain"], full)
    (trap,) = TrapCheck.of(folders["plain"]).traps
    assert (trap.name, trap.loaders) == ("d2t without trimming", (VLLM,))


def test_other_folders_are_refused(folders: dict[str, Path], eagle: DrafterFolder, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"is no exported drafter: it has no config\.json"):
        TrapCheck.of(eagle.path)
    with pytest.raises(ModelError, match="is a LlamaForCausalLM, no EAGLE-3 drafter"):
        TrapCheck.of(Path(eagle.about.target.name))
    spoil(folders["plain"], drop("hidden_size"))
    with pytest.raises(ModelError, match="hidden_size must be a positive whole number, not None"):
        TrapCheck.of(folders["plain"])
    spoil(folders["speculators"], tensor("lm_head.weight", lambda weight: weight[:0]))
    with pytest.raises(ModelError, match=r"lm_head\.weight has shape \[0, 64\]"):
        TrapCheck.of(folders["speculators"])
    (folders["speculators"] / "model.safetensors").write_bytes(b"")
    with pytest.raises(ModelError, match="is not a whole safetensors file"):
        TrapCheck.of(folders["speculators"])


def test_the_page_names_every_trap() -> None:
    page = (Path(__file__).parents[3] / "docs" / "export.md").read_text(encoding="utf-8")
    planted = {name for _, _, expected in PLANTED.values() for name in expected}
    assert {name for name in planted | {"own head unused", "d2t without trimming"} if f"`{name}`" not in page} == set()
