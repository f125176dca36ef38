"""A stand-alone drafter as an ordinary Llama, run by transformers."""

from pathlib import Path

import pytest
import torch
import transformers
from tests.training.export import drafters

from lope.models.drafter_folder import DrafterFolder, DrafterTarget
from lope.models.loading import open_checkpoint
from lope.training.export.export import Export
from lope.training.standalone_net import StandaloneNet


@pytest.fixture
def drafter(target: DrafterTarget, tmp_path: Path) -> DrafterFolder:
    return drafters.standalone(target, tmp_path / "drafter", kept=target.vocab_size)


@torch.no_grad()
def own_logits(drafter: DrafterFolder, tokens: torch.Tensor) -> torch.Tensor:
    """Of the drafter as lope trains it."""
    embedding = open_checkpoint(drafter.about.target.name).tensors[drafters.EMBEDDING]
    net = StandaloneNet(drafter.about.decoder, embedding, drafter.tensors["kept"])
    net.load_state_dict({name: tensor for name, tensor in drafter.tensors.items() if name != "kept"}, strict=True)
    return net.lm_head(net(tokens, torch.zeros_like(tokens), torch.arange(tokens.shape[1])[None]))


@torch.no_grad()
def test_transformers_computes_the_same_logits(drafter: DrafterFolder, tmp_path: Path) -> None:
    export = Export.of(drafter, "transformers", tmp_path / "out")
    model = transformers.AutoModelForCausalLM.from_pretrained(export.out)
    assert type(model) is transformers.LlamaForCausalLM
    assert model.dtype == torch.float32
    tokens = torch.randint(drafter.about.target.vocab_size, (1, 40), generator=torch.Generator().manual_seed(1))
    expected = own_logits(drafter, tokens)
    assert expected.std() > 0.5  # else equality would say little
    torch.testing.assert_close(model(tokens).logits, expected, atol=1e-4, rtol=0)


def test_transformers_takes_it_as_an_assistant(drafter: DrafterFolder, tmp_path: Path) -> None:
    export = Export.of(drafter, "transformers", tmp_path / "out")
    target = transformers.AutoModelForCausalLM.from_pretrained(drafter.about.target.name)
    assistant = transformers.AutoModelForCausalLM.from_pretrained(export.out)
    tokenizer = transformers.AutoTokenizer.from_pretrained(export.out)
    inputs = tokenizer("the cat sat", return_tensors="pt")
    settings = {"max_new_tokens": 12, "do_sample": False}
    plain = target.generate(**inputs, **settings)
    assert torch.equal(target.generate(**inputs, assistant_model=assistant, **settings), plain)


def test_the_tokenizer_is_the_targets(drafter: DrafterFolder, tmp_path: Path) -> None:
    out = Export.of(drafter, "sglang", tmp_path / "out").out
    assert open_checkpoint(str(out)).speech.tokenizer.fingerprint == drafter.about.target.tokenizer
    assert transformers.AutoTokenizer.from_pretrained(out).chat_template is not None
    assert (out / "README.md").is_file()


@pytest.mark.parametrize(
    ("engine", "words"),
    [("vllm", '"method": "draft_model"'), ("sglang", "STANDALONE"), ("transformers", "assistant_model=")],
)
def test_each_engine_has_its_command(drafter: DrafterFolder, tmp_path: Path, engine: str, words: str) -> None:
    export = Export.of(drafter, engine, tmp_path / "out")
    assert export.form == "llama"
    assert words in export.command
    assert str(tmp_path / "out") in export.command
