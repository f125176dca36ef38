"""Small sets, distilled by tiny models."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from lope.models.loaded import LoadedModel
from lope.training.distilled_set import DistilledSet, Manifest
from lope.training.distiller import Distiller, Progress
from lope.training.prompt_sources import FilePrompts, OwnPrompts, PromptSource
from lope.training.shard import Sequence as Conversation

PROMPTS = ["the cat sat on the mat", "and the dog ran", "the mat and the cat", "a dog", "the cat ran after the dog"]


def file_prompts(prompts: Sequence[str] = PROMPTS, seed: int = 0) -> FilePrompts:
    found = FilePrompts(Path("prompts.txt"), tuple(prompts), tuple(range(len(prompts))))
    return replace(found, order=tuple(torch.randperm(len(prompts), generator=_generator(seed)).tolist()))


def manifest_for(model: LoadedModel, source: PromptSource | None = None, **settings: Any) -> Manifest:
    source = source or OwnPrompts()
    base = Manifest(
        target=model.name,
        tokenizer=model.tokenizer.fingerprint,
        vocab_size=model.backend.vocab_size,
        hidden_size=model.backend.hidden_size,
        prompts=source.name,
        temperatures=(0.0, 0.7, 1.0),
        top_p=0.95,
        top_k=16,
        layers=(1, 3),
        max_new_tokens=12,
        seed=0,
        prompts_sha256=source.sha256,
    )
    return replace(base, **settings)


def distil(
    model: LoadedModel,
    folder: Path,
    source: PromptSource,
    enough: Callable[[Progress], bool],
    *,
    width: int = 8,
    shard_tokens: int = 200,
    **settings: Any,
) -> DistilledSet:
    """Distil into a folder, which others may write afterwards."""
    place = DistilledSet.begin(folder, manifest_for(model, source, **settings))
    try:
        list(Distiller(model, source, place, width=width, shard_tokens=shard_tokens).run(enough))
    finally:
        place.close()
    return place


def after(sequences: int) -> Callable[[Progress], bool]:
    """Enough when so many conversations are finished."""
    return lambda progress: progress.sequences >= sequences


def conversation(number: int, *, length: int = 9, prompt: int = 4, top_k: int = 3, width: int = 0) -> Conversation:
    """A random one, of a vocabulary of 50."""
    generator = _generator(number)
    answer = length - prompt
    return Conversation(
        number,
        0.5 * (number % 3),
        prompt,
        torch.randint(50, (length,), generator=generator),
        torch.randint(50, (answer, top_k), generator=generator),
        torch.randn(answer, 50, generator=generator).log_softmax(-1)[:, :top_k].half(),
        torch.randn(length, width, generator=generator).bfloat16() if width else None,
    )


def by_number(place: DistilledSet) -> dict[int, Conversation]:
    found = {sequence.number: sequence for sequence in place.read()}
    assert len(found) == place.sizes()[0], "every prompt is answered once"
    return found


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
