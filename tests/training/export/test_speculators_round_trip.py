"""A feature drafter through the speculators library and back: the same draft logits.

The library pulls a hundred packages and caps transformers below the version that lope is tested with, so it is no part
of the test environment. In an environment of your own: `pip install --no-deps speculators==0.9.0` and what its import
asks for, then run this file with that environment's Python.
"""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.training.export import drafters

from lope.models.drafter_folder import DrafterFolder, DrafterTarget
from lope.models.loading import open_checkpoint
from lope.training.eagle_net import EagleNet
from lope.training.export.export import Export

STEPS, ITEMS = 3, 30


@pytest.mark.filterwarnings("ignore")  # the library's own
@pytest.mark.parametrize("trimmed", [True, False])
@torch.no_grad()
def test_draft_logits_are_the_same_in_speculators(target: DrafterTarget, tmp_path: Path, trimmed: bool) -> None:
    pytest.importorskip("speculators", reason="the speculators library is not installed: see this file's first lines")
    from speculators import SpeculatorModelConfig
    from speculators.models.eagle3 import Eagle3DraftModel

    drafter = drafters.eagle(target, tmp_path / "drafter", kept=200 if trimmed else target.vocab_size)
    out = Export.of(drafter, "vllm", tmp_path / "out").out
    config = SpeculatorModelConfig.from_pretrained(str(out))
    config.transformer_layer_config._attn_implementation = "eager"  # flex attention is for GPUs
    model = Eagle3DraftModel.from_pretrained(str(out), config=config)
    # asked for, since by itself it takes the target's embedding only where unset memory happens to hold a NaN
    model._load_verifier_weights(overwrite_embed_tokens=True)
    held, written = model.state_dict(), load_file(out / "model.safetensors")
    for name, tensor in written.items():
        assert torch.equal(held[name], tensor), name

    draw = torch.Generator().manual_seed(1)
    tokens = torch.randint(target.vocab_size, (1, ITEMS), generator=draw)
    features = torch.randn(1, ITEMS, 3 * target.hidden_size, generator=draw)
    said: list[torch.Tensor] = []
    model.lm_head.register_forward_hook(lambda module, given, logits: said.append(logits[0]))
    # row i reads the features of item i and the token of item i + 1
    model(
        hidden_states=features[:, :-1],
        input_ids=tokens[:, 1:],
        document_ids=torch.zeros(1, ITEMS - 1, dtype=torch.int64),
        ttt_steps=STEPS,
    )
    for step, ours in enumerate(own_logits(drafter, features, tokens)):
        rows = ITEMS - 1 - step  # below them the tokens end
        assert ours[:rows].std() > 0.3  # else equality would say little
        torch.testing.assert_close(said[step][:rows], ours[:rows], atol=1e-4, rtol=0)


def own_logits(drafter: DrafterFolder, features: torch.Tensor, tokens: torch.Tensor) -> list[torch.Tensor]:
    """[n, K] of each step, of the drafter as lope trains it."""
    embedding = open_checkpoint(drafter.about.target.name).tensors[drafters.EMBEDDING]
    net = EagleNet(drafter.about.decoder, embedding, drafter.tensors["kept"])
    net.restore(drafter.tensors)
    places = torch.arange(ITEMS)[None]
    document = torch.zeros(1, ITEMS, dtype=torch.int64)
    states = net(features, tokens, document, places, places[:, :-1], STEPS)
    return [net.logits(x[0]) for x in states]
