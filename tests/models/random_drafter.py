"""Random drafter folders of both kinds, small enough that every key and feature shows in the logits."""

from pathlib import Path

import torch
from torch import Tensor

from lope.models.drafter_folder import DrafterAbout, DrafterFolder, DrafterTarget, drafter_decoder, shapes
from lope.models.folder import Folder


def about(
    kind: str, target: DrafterTarget, *, kept: int = 40, storage: str = "float32", **sizes: object
) -> DrafterAbout:
    eagle = kind == "eagle"
    decoder = {
        "hidden_size": target.hidden_size if eagle else 32,
        "intermediate_size": 48,
        "num_layers": 1 if eagle else 2,
        "num_heads": 4,
        "num_kv_heads": 2,
        "head_dim": 8,
        "norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "context": 256,
        **sizes,
    }
    layers = tuple(sorted({0, target.num_layers // 2, target.num_layers})) if eagle else ()
    return DrafterAbout(kind, target, drafter_decoder(kind, kept, **decoder), layers, storage)


def tensors(about: DrafterAbout, seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    made: dict[str, Tensor] = {}
    for name, shape in shapes(about).items():
        if name == "kept":
            chosen = torch.randperm(about.target.vocab_size, generator=generator)[: shape[0]]
            made[name] = chosen.sort().values
            continue
        values = torch.randn(shape, generator=generator)
        made[name] = values * (1.2 / shape[-1] ** 0.5) if len(shape) == 2 else 1.0 + 0.3 * values
    return made


def write(path: Path, about: DrafterAbout, seed: int = 0) -> Path:
    DrafterFolder.write(path, about, tensors(about, seed))
    return path


def beside(model: Path, kind: str, seed: int = 0, *, kept: int = 40) -> Path:
    """A drafter for the model in this folder, written once."""
    place = model.parent / f"{kind}-{seed}-{kept}"
    if not place.exists():
        checkpoint = Folder(model).checkpoint()
        config, fingerprint = checkpoint.config, checkpoint.speech.tokenizer.fingerprint
        target = DrafterTarget(model.parent.name, fingerprint, config.vocab_size, config.hidden_size, config.num_layers)
        write(place, about(kind, target, kept=kept), seed)
    return place
