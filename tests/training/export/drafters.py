"""Tiny random drafters of both kinds for the tiny target models."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lope.models.drafter_folder import DrafterAbout, DrafterFolder, DrafterTarget, drafter_decoder, shapes
from lope.models.loading import open_checkpoint
from lope.training.model_card import run_line

EMBEDDING = "model.embed_tokens.weight"
SIZES = {
    "intermediate_size": 80,
    "num_heads": 4,
    "num_kv_heads": 2,
    "head_dim": 16,
    "norm_eps": 1e-5,
    "rope_theta": 20000.0,
    "context": 128,
}


def aimed_at(folder: Path, **changed: Any) -> DrafterTarget:
    """What a drafter says of its target, the model in a folder."""
    checkpoint = open_checkpoint(str(folder))
    config = checkpoint.config
    told = {
        "name": str(folder),
        "tokenizer": checkpoint.speech.tokenizer.fingerprint,
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_layers": config.num_layers,
    }
    return DrafterTarget(**{**told, **changed})


def eagle(target: DrafterTarget, path: Path, *, kept: int = 200, seed: int = 0, **changed: Any) -> DrafterFolder:
    """A feature drafter on disk. kept: tokens of its head."""
    decoder = drafter_decoder("eagle", kept, hidden_size=target.hidden_size, num_layers=1, **SIZES)
    told = {"kind": "eagle", "target": target, "decoder": decoder, "layers": (0, 1, 2)}
    return _written(DrafterAbout(**{**told, **changed}), path, seed)


def standalone(target: DrafterTarget, path: Path, *, kept: int, seed: int = 0, **changed: Any) -> DrafterFolder:
    """A stand-alone drafter on disk, two layers of 48."""
    decoder = drafter_decoder("standalone", kept, hidden_size=48, num_layers=2, **SIZES)
    told = {"kind": "standalone", "target": target, "decoder": decoder}
    return _written(DrafterAbout(**{**told, **changed}), path, seed)


def _written(about: DrafterAbout, path: Path, seed: int) -> DrafterFolder:
    draw = torch.Generator().manual_seed(seed)
    tensors: dict[str, Tensor] = {}
    for name, shape in shapes(about).items():
        if name == "kept":
            tensors[name] = torch.randperm(about.target.vocab_size, generator=draw)[: shape[0]].sort().values
        elif len(shape) == 1:
            tensors[name] = 0.5 + torch.rand(shape, generator=draw)
        else:
            tensors[name] = torch.randn(shape, generator=draw) * 2 * shape[1] ** -0.5
    DrafterFolder.write(path, about, tensors)
    (path / "README.md").write_text(f"# a drafter\n{run_line(about.target.name, about.kind)}\n", encoding="utf-8")
    return DrafterFolder.read(path)
