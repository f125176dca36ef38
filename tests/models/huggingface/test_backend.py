"""The adapter as backend: loading, the same logits as the lean decoder, truncation, and what it refuses."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import transformers
from tests.models import families
from tests.models.huggingface.other_families import OTHERS, REFUSED, VOCABULARY, make, other
from tests.models.huggingface.reference import EVERYTHING, TOLERANCE, at_once, path_difference, scored, tree, words

from lope.core.errors import ModelError, SettingError, UsageError
from lope.core.prompt import Prompt
from lope.core.protocols import Job
from lope.core.scores import Needs
from lope.core.verdict import Verdict
from lope.models.cache_folder import CacheFolder
from lope.models.huggingface import HuggingFaceBackend
from lope.models.loading import load

Adapted = Callable[[str], tuple[Any, HuggingFaceBackend]]
PROMPT = words(11, seed=1)


@pytest.mark.parametrize("name", ["llama2", "llama3", "mistral", "qwen2", "qwen3"])
def test_it_says_what_the_lean_decoder_says(name: str, tiny: Callable[[str], Any]) -> None:
    folder = tiny(name)[1]
    ours, theirs = (load(f"{prefix}{folder}", dtype="float32").backend for prefix in ("", "hf:"))
    for part in ("vocab_size", "context", "num_parameters", "dtype", "device"):
        assert getattr(ours, part) == getattr(theirs, part), part
    draft, last = tree(12, seed=3), tree(7, seed=9)
    verdict = Verdict(draft.path(11), (*draft.words(11), 17))
    rows = []
    for scorer in (ours.target(False), theirs.target(False)):
        session = scorer.open(Prompt(PROMPT))
        [first] = scorer.score([Job(session, draft, Needs((0, 1, 2), EVERYTHING.logits, VOCABULARY))])
        session.commit(draft, verdict)
        [second] = scorer.score([Job(session, last, EVERYTHING)])
        features = [first.features[layer].flatten() for layer in (0, 1, 2)]
        assert first.context_logits is not None
        context = first.context_logits.values.sort(dim=-1).values.flatten()
        rows.append(torch.cat([first.logits.values.flatten(), second.logits.values.flatten(), context, *features]))
    assert float((rows[0] - rows[1]).abs().max()) < TOLERANCE


@pytest.mark.parametrize("name", ["gpt_neox", "gemma2"])
def test_a_model_that_only_transformers_knows_is_loaded_by_name(name: str, tmp_path: Path) -> None:
    model = other(name)
    folder = families.save_folder(model, tmp_path / name)
    loaded = load(f"hf:{folder}", dtype="float32")
    assert loaded.name == f"hf:{folder}"
    assert loaded.tokenizer.decode(loaded.tokenizer.encode("the cat")) == "the cat"
    assert path_difference(model, loaded.backend, PROMPT, tree(9, seed=2)) < TOLERANCE
    with pytest.raises(ModelError):
        load(str(folder), dtype="float32")


def test_half_precision(tmp_path: Path) -> None:
    folder = families.save_folder(other("gpt_neox"), tmp_path / "folder")
    backend = load(f"hf:{folder}", dtype="bfloat16").backend
    assert backend.dtype == "bfloat16"
    assert scored(backend, PROMPT, tree(9, seed=2)).logits.values.dtype == torch.float32


@pytest.mark.parametrize("name", ["llama3", "gpt_neox"])
def test_first_layers_share_the_weights(name: str, adapted: Adapted) -> None:
    model, backend = adapted(name)
    short = backend.truncated(2)
    draft = tree(9, seed=2)
    scores = scored(short, PROMPT, draft, Needs((0, 1, 2), EVERYTHING.logits))
    whole = scored(backend, PROMPT, draft, Needs((0, 1, 2, 3), EVERYTHING.logits))
    assert torch.equal(scores.features[0], whole.features[0])
    assert torch.allclose(scores.features[1], whole.features[1], atol=TOLERANCE)
    norm = model.base_model.norm if name == "llama3" else model.base_model.final_layer_norm
    with torch.inference_mode():
        expected = model.get_output_embeddings()(norm(whole.features[2][len(PROMPT) - 1 :]))
    assert float((scores.logits.values - expected).abs().max()) < TOLERANCE
    assert short.num_parameters < backend.num_parameters
    kept = {parameter.data_ptr() for parameter in short._packed.model.parameters()}
    assert kept <= {parameter.data_ptr() for parameter in model.parameters()}
    with pytest.raises(SettingError, match="layers must lie between 1 and 3, not 4"):
        backend.truncated(4)


def test_not_every_architecture_can_be_truncated(adapted: Adapted) -> None:
    with pytest.raises(UsageError, match=r"OPTForCausalLM cannot be truncated: it has no list of layers model\.layers"):
        adapted("opt")[1].truncated(2)


def test_exact_passes_are_refused(adapted: Adapted) -> None:
    assert not adapted("llama2")[1].can_be_exact
    with pytest.raises(UsageError, match="name the model without hf:, or run without exact"):
        adapted("llama2")[1].target(True)


@pytest.mark.parametrize("name", REFUSED)
def test_models_that_forget_or_count_otherwise_are_refused(name: str) -> None:
    family, settings, reason = REFUSED[name]
    with pytest.raises(ModelError, match=reason) as caught:
        HuggingFaceBackend(make(family, settings))
    assert "every layer keeps all keys and values (full attention)" in str(caught.value)


def _deaf(argument: str) -> Any:
    """A Llama that takes an argument and takes no notice of it."""

    class Deaf(transformers.LlamaForCausalLM):  # type: ignore[misc]
        def forward(
            self,
            input_ids: Any = None,
            attention_mask: Any = None,
            position_ids: Any = None,
            cache: Any = None,
            logits_to_keep: Any = 0,
            **more: Any,
        ) -> Any:
            given = {"attention_mask": attention_mask, "position_ids": position_ids, argument: None}
            return super().forward(input_ids=input_ids, cache=cache, logits_to_keep=logits_to_keep, **given, **more)

    return Deaf


@pytest.mark.parametrize("argument", ["attention_mask", "position_ids"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_models_that_take_no_notice_are_refused(argument: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = _deaf(argument)(families.hugging_face("llama2").config).to(dtype)
    with pytest.raises(ModelError, match="Deaf does not honour 4-D masks with explicit positions"):
        HuggingFaceBackend(model)


def test_frequencies_that_change_with_length_bound_the_context() -> None:
    longrope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": [1.0] * 8,
        "long_factor": [4.0] * 8,
        "original_max_position_embeddings": 64,
    }
    settings = {**OTHERS["phi3"][1], "rope_parameters": longrope, "original_max_position_embeddings": 64}
    assert HuggingFaceBackend(make("Phi3", settings)).context == 64


def test_a_tensor_that_is_not_there_is_named(tmp_path: Path) -> None:
    folder = families.save_folder(other("gpt_neox"), tmp_path / "folder")
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    del tensors["gpt_neox.layers.1.attention.dense.weight"]
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        ModelError, match=r"has no tensor gpt_neox\.layers\.1\.attention\.dense\.weight \(1 are missing"
    ):
        load(f"hf:{folder}", dtype="float32")
    (folder / "model.safetensors").write_bytes(b"\x00" * 64)
    with pytest.raises(ModelError, match="transformers cannot load it"):
        load(f"hf:{folder}", dtype="float32")


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    folder = families.save_folder(other("gpt_neox"), tmp_path / "folder")
    torch.save(safetensors.torch.load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="transformers cannot load it"):
        load(f"hf:{folder}", dtype="float32")


def test_transformers_is_imported_only_for_hf_names() -> None:
    """And its absence is one clear error."""
    code = """
import sys
import lope.models.loading
print('transformers' in sys.modules)
sys.modules['transformers'] = None
try:
    lope.models.loading.READERS.part('hf')
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == "False"
    assert "pip install 'lope[hf]'" in second


@pytest.mark.model
def test_the_built_in_model(user_cache: CacheFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOPE_HOME", str(user_cache.root))
    ours, theirs = (load(name, dtype="float32", progress=False) for name in ("smollm2", "hf:smollm2"))
    prompt = tuple(ours.tokenizer.encode("The sky is blue because sunlight is scattered by the air, and"))
    draft = tree(10, seed=2, vocabulary=49152)
    mine, other_one = (scored(model.backend, prompt, draft) for model in (ours, theirs))
    assert float((mine.logits.values - other_one.logits.values).abs().max()) < 2e-3
    node = max(range(len(draft)), key=lambda node: draft.depths[node])
    plain = at_once(theirs.backend._packed.model, prompt + draft.words(node))[0][-1]
    assert float((other_one.logits.values[node + 1] - plain).abs().max()) < 2e-3
