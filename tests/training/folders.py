"""Random drafter folders for tiny targets, and small distilled sets as if those targets had said them."""

from collections.abc import Sequence
from pathlib import Path

import torch
from tests.models.random_drafter import about, write

from lope.models.drafter_folder import DrafterFolder
from lope.models.loaded import LoadedModel
from lope.training import distilled_set
from lope.training.distilled_set import DistilledSet
from lope.training.manifest import Manifest
from lope.training.teaching import drafter_target


def drafter(path: Path, model: LoadedModel, kind: str, *, storage: str = "float32", kept: int = 120) -> DrafterFolder:
    write(path, about(kind, drafter_target(model), kept=kept, storage=storage))
    return DrafterFolder.read(path)


def distilled(path: Path, model: LoadedModel, answers: Sequence[Sequence[int]], *, tokenizer: str = "") -> Path:
    """One sequence an answer, each to the prompt `the cat`."""
    backend = model.backend
    manifest = Manifest(
        target=model.name,
        tokenizer=tokenizer or model.tokenizer.fingerprint,
        vocab_size=backend.vocab_size,
        hidden_size=backend.hidden_size,
        prompts="made up",
        temperatures=(0.0,),
        top_p=1.0,
        top_k=1,
        layers=(),
        max_new_tokens=8,
        seed=0,
    )
    prompt = model.tokenizer.encode("the cat")
    place = DistilledSet.begin(path, manifest)
    if answers:
        place.append([_sequence(number, prompt, tuple(answer)) for number, answer in enumerate(answers)])
    place.close()
    return path


def _sequence(number: int, prompt: tuple[int, ...], answer: tuple[int, ...]) -> distilled_set.Sequence:
    said = torch.tensor(answer)
    laws = torch.zeros(len(answer), 1, dtype=torch.float16)
    return distilled_set.Sequence(number, 0.0, len(prompt), torch.tensor(prompt + answer), said[:, None], laws, None)
