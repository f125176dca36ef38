"""What is written for other engines: the documents, the tensors, and what is refused."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from tests.training.export import drafters

from lope.core.errors import ModelError, RunError, UsageError
from lope.models.drafter_folder import DrafterFolder, DrafterTarget
from lope.training.export.export import Export
from lope.training.export.trap_check import TrapCheck


def config_of(export: Export) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((export.out / "config.json").read_text())
    return found


@pytest.mark.parametrize(("engine", "form"), [("sglang", "plain"), ("vllm", "speculators")])
def test_an_eagle_drafter_has_the_tensors_that_loaders_expect(
    eagle: DrafterFolder, tmp_path: Path, engine: str, form: str
) -> None:
    export = Export.of(eagle, engine, tmp_path / "out")
    assert export.form == form
    assert export.files == ("README.md", "config.json", "model.safetensors")
    card = (tmp_path / "out" / "README.md").read_text()
    assert card == f"# a drafter\n    {export.command}\n", "it is not lope that uses this folder"
    written = load_file(tmp_path / "out" / "model.safetensors")
    assert written.keys() == (eagle.tensors.keys() - {"kept"}) | {"d2t", "t2d"}
    for name in eagle.tensors.keys() - {"kept"}:
        assert torch.equal(written[name], eagle.tensors[name])
    kept = eagle.tensors["kept"]
    assert written["d2t"].dtype == torch.int64
    assert [i + offset for i, offset in enumerate(written["d2t"].tolist())] == kept.tolist()
    assert written["t2d"].dtype == torch.bool
    assert written["t2d"].nonzero().flatten().tolist() == kept.tolist()
    assert len(written["t2d"]) == eagle.about.target.vocab_size
    with safe_open(tmp_path / "out" / "model.safetensors", framework="pt") as file:
        assert file.metadata() == {"format": "pt"}  # transformers refuses a file without
    check = TrapCheck.of(tmp_path / "out", num_layers=3)
    assert check.form == form
    assert check.traps == ()


def test_layers_stand_at_both_places_in_the_counting_of_each(eagle: DrafterFolder, tmp_path: Path) -> None:
    for engine in ("sglang", "vllm"):
        config = config_of(Export.of(eagle, engine, tmp_path / engine))
        assert config["eagle_aux_hidden_state_layer_ids"] == [0, 1, 2]
        assert config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [-1, 0, 1]


def test_layers_that_every_engine_takes_unasked_are_not_named(remote: DrafterFolder, tmp_path: Path) -> None:
    for engine in ("sglang", "vllm"):
        text = (Export.of(remote, engine, tmp_path / engine).out / "config.json").read_text()
        assert "layer_ids" not in text
        assert TrapCheck.of(tmp_path / engine).traps == ()


def test_the_plain_form_is_the_config_of_a_llama(eagle: DrafterFolder, tmp_path: Path) -> None:
    config = config_of(Export.of(eagle, "sglang", tmp_path / "out"))
    assert config["architectures"] == ["LlamaForCausalLMEagle3"]
    assert config["model_type"] == "llama"
    assert config["vocab_size"] == eagle.about.target.vocab_size
    assert config["draft_vocab_size"] == 200
    assert config["rope_theta"] == config["rope_parameters"]["rope_theta"] == 20000.0
    for name in ("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output", "tie_word_embeddings"):
        assert config[name] is False


def test_the_speculators_form_names_the_target_and_the_depth(
    eagle: DrafterFolder, remote: DrafterFolder, tmp_path: Path
) -> None:
    config = config_of(Export.of(remote, "vllm", tmp_path / "remote-out"))
    about = config["speculators_config"]
    assert about["verifier"] == {"name_or_path": "some/model", "architectures": []}
    assert about["proposal_methods"][0]["speculative_tokens"] == 5
    assert config["norm_before_residual"] is False
    assert config["transformer_layer_config"]["vocab_size"] == remote.about.target.vocab_size
    near = config_of(Export.of(eagle, "vllm", tmp_path / "near"))["speculators_config"]
    assert near["verifier"] == {"name_or_path": eagle.about.target.name, "architectures": ["LlamaForCausalLM"]}
    assert near["proposal_methods"][0]["speculative_tokens"] == 3


def test_the_built_in_target_goes_by_its_hub_name(target: DrafterTarget, tmp_path: Path) -> None:
    aimed = drafters.DrafterTarget("smollm2", target.tokenizer, target.vocab_size, target.hidden_size, 30)
    drafter = drafters.eagle(aimed, tmp_path / "eagle", layers=(2, 15, 27))
    export = Export.of(drafter, "vllm", tmp_path / "out")
    assert export.verifier == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert export.command == f"vllm serve {tmp_path / 'out'}"


def test_a_target_that_is_a_folder_is_named_to_vllm(eagle: DrafterFolder, tmp_path: Path) -> None:
    command = Export.of(eagle, "vllm", tmp_path / "out").command
    assert command.startswith(f"vllm serve {eagle.about.target.name} --speculative-config ")
    given = json.loads(re.findall(r"'(.*)'", command)[0])
    assert given == {"method": "eagle3", "model": str(tmp_path / "out"), "num_speculative_tokens": 3}


def test_a_head_of_all_tokens_needs_no_map(target: DrafterTarget, tmp_path: Path) -> None:
    drafter = drafters.eagle(target, tmp_path / "eagle", kept=target.vocab_size)
    for engine in ("sglang", "vllm"):
        export = Export.of(drafter, engine, tmp_path / engine)
        assert not {"d2t", "t2d"} & load_file(export.out / "model.safetensors").keys()


def test_storage_is_undone(target: DrafterTarget, tmp_path: Path) -> None:
    drafter = drafters.eagle(target, tmp_path / "eagle", storage="int8")
    written = load_file(Export.of(drafter, "sglang", tmp_path / "out").out / "model.safetensors")
    assert torch.equal(written["lm_head.weight"], drafter.tensors["lm_head.weight"])


def test_what_cannot_be_exported_is_one_line(eagle: DrafterFolder, target: DrafterTarget, tmp_path: Path) -> None:
    trimmed = drafters.standalone(target, tmp_path / "trimmed", kept=100)
    last = drafters.eagle(target, tmp_path / "last", layers=(0, 1, 3))
    two = drafters.eagle(target, tmp_path / "two", layers=(1, 2))
    other = drafters.aimed_at(Path(target.name), tokenizer="other")
    foreign = drafters.standalone(other, tmp_path / "foreign", kept=target.vocab_size)
    wider = drafters.aimed_at(Path(target.name), num_layers=9)
    refused = [
        (eagle, "transformers", "transformers has no EAGLE-3 class .* --to vllm or --to sglang"),
        (eagle, "ollama", r"no engine 'ollama' to export to \(there are: vllm, sglang, transformers\)"),
        (trimmed, "vllm", rf"keeps 100 of the target's {target.vocab_size} .* logit 0.* train one with --vocab"),
        (last, "sglang", "layer 3 is not between 0 and 2"),
        (two, "vllm", "reads 2 hidden states of the target; llama.cpp knows three only"),
        (foreign, "transformers", "has another tokenizer than"),
        (drafters.eagle(wider, tmp_path / "wider"), "vllm", "has num_hidden_layers 3, the drafter was trained for 9"),
    ]
    for drafter, engine, message in refused:
        with pytest.raises(UsageError, match=message) as caught:
            Export.of(drafter, engine, tmp_path / "out")
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "out").exists()
        assert not list(tmp_path.glob(".out*"))
    full = drafters.standalone(target, tmp_path / "full", kept=target.vocab_size)
    with pytest.raises(ModelError, match="no model 'nobody'"):
        Export.of(full, "vllm", tmp_path / "out", target="nobody")


def test_a_folder_that_is_there_is_left_alone(eagle: DrafterFolder, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    Export.of(eagle, "sglang", tmp_path / "empty")
    with pytest.raises(UsageError, match="is there already"):
        Export.of(eagle, "vllm", tmp_path / "empty")
    with pytest.raises(UsageError, match="is there already"):
        Export.of(eagle, "vllm", tmp_path / "eagle" / "drafter.json")
    with pytest.raises(RunError, match="cannot be written: File exists"):
        Export.of(eagle, "vllm", tmp_path / "eagle" / "drafter.json" / "below")
