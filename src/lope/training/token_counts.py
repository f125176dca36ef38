"""What a vocabulary is trimmed by: how often each token is said by the target, by the drafter, or in plain text.

Goel et al. 2025 (arXiv:2506.22694): counts over what the target says serve best, what a drafter says next, text last.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from lope.core import commas
from lope.core.errors import UsageError
from lope.core.prompt import Prompt
from lope.drafters.around import AroundDrafter
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.models.drafter_folder import DrafterFolder
from lope.models.loaded import LoadedModel
from lope.training.distilled_set import DistilledSet
from lope.training.listener import Listener
from lope.training.prompt_sources import read_lines
from lope.training.shard import Text
from lope.training.vocabulary import count_answers, count_text

# of so many texts one is not counted: what is covered of it is what will be covered of others
_HELD_OUT = 10
_DEPTH = 4
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class TokenCounts:
    """counts [V]: what to trim by. held_out [V]: of every tenth text, which was not counted; zeros where too few."""

    counts: Tensor
    held_out: Tensor

    @classmethod
    def of_target(cls, model: LoadedModel, sets: Sequence[Path]) -> "TokenCounts":
        """Over the answers of distilled sets. Raises UsageError for a set that is empty or of another tokenizer."""
        return _divided(_texts(model, sets), lambda some: count_answers(some, model.backend.vocab_size))

    @classmethod
    def of_text(cls, model: LoadedModel, path: Path) -> "TokenCounts":
        """Over the lines of a file. Raises UsageError for one without any."""
        return _divided(_lines(path), lambda some: count_text(some, model))

    @classmethod
    def of_drafts(
        cls, model: LoadedModel, folder: DrafterFolder, prompts: Sequence[Prompt], max_new_tokens: int, seed: int
    ) -> "TokenCounts":
        """Over what the drafter proposes, chains of four at temperature 1, while the target answers `prompts`.

        Expected counts: the laws that it drew from, added up. A drafter that reads the target's hidden states cannot
        speak by itself, and this is where its head is asked: so both kinds are heard at their work.
        """
        parts = Parts(f"{folder.about.kind}:path={commas.within(str(folder.path))}", policy=f"fixed:depth={_DEPTH}")
        listener = Listener(torch.zeros(0))
        engine = Engine(model, parts, exact=False, drafter=AroundDrafter(parts.make_drafter(model), listener))

        def heard(some: Iterable[Prompt]) -> Tensor:
            listener.heard = torch.zeros(model.backend.vocab_size, dtype=torch.float64)
            for number, prompt in enumerate(some):
                engine.generate(prompt, max_new_tokens=max_new_tokens, temperature=1.0, seed=seed + number)
            return listener.heard

        return _divided(prompts, heard)


def prompts_of(
    model: LoadedModel, sets: Sequence[Path], text: Path | None, count: int, max_new_tokens: int
) -> list[Prompt]:
    """The first `count` prompts, of sets or else of a file's lines, that leave room for their answers.

    Raises UsageError where there are none.
    """
    if sets:
        found = (Prompt(tuple(said.tokens[: said.prompt].tolist())) for said in _texts(model, sets))
    else:
        assert text is not None, "prompts come from sets or from a file"
        engine = Engine(model, Parts(drafter="none"), exact=False)
        found = (Prompt(engine.ids(line, raw=model.template is None)) for line in _lines(text))
    fitting = [prompt for prompt in found if len(prompt.ids) + max_new_tokens < model.backend.context]
    if not fitting:
        raise UsageError(f"no prompt leaves room for {max_new_tokens} tokens in {model.name}'s context")
    return fitting[:count]


def _divided(pieces: Sequence[T], count: Callable[[Iterable[T]], Tensor]) -> TokenCounts:
    places = range(_HELD_OUT - 1, len(pieces), _HELD_OUT)
    counted = count(piece for place, piece in enumerate(pieces) if place not in places)
    return TokenCounts(counted, count(pieces[place] for place in places))


def _texts(model: LoadedModel, sets: Sequence[Path]) -> list[Text]:
    found: list[Text] = []
    for path in sets:
        place = DistilledSet.open(path)
        place.manifest.check(model, path)
        before = len(found)
        found += place.texts()
        if len(found) == before:
            raise UsageError(f"{path}: holds no sequence yet")
    return found


def _lines(path: Path) -> list[str]:
    lines = list(read_lines(path))
    if not lines:
        raise UsageError(f"{path}: holds no text")
    return lines
