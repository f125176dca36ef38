"""Plain text as an archive: a target that reads it, instead of writing, thinks of every token of it in one pass."""

from collections.abc import Iterable

import torch

from lope.core import checks
from lope.core.errors import UsageError
from lope.models.loaded import LoadedModel
from lope.training.manifest import READ, Manifest
from lope.training.shard import Text
from lope.training.token_archive import TokenArchive

# of a text's end, less is left over than is worth a sequence
_SHORTEST = 16


def read_text(texts: Iterable[str], name: str, model: LoadedModel, length: int) -> TokenArchive:
    """Texts cut into sequences of `length` tokens, each with one token of prompt: all others are learned from.

    It costs a fraction of distilling and shows a drafter long contexts, in words that are not the target's own.
    name: of the file they came from. Raises UsageError where there is no text to speak of.
    """
    checks.between("length", length, _SHORTEST, model.backend.context)
    parts = [part for text in texts for part in torch.tensor(model.tokenizer.encode(text)).split(length)]
    found = [part for part in parts if len(part) >= _SHORTEST]
    if not found:
        raise UsageError(f"{name}: holds no text of {_SHORTEST} tokens")
    manifest = Manifest.begun(
        model,
        prompts=f"{READ}{name}",
        temperatures=(1.0,),
        top_p=1.0,
        top_k=0,
        layers=(),
        max_new_tokens=length,
        seed=0,
    )
    return TokenArchive(manifest, tuple(Text(number, 1.0, 1, part) for number, part in enumerate(found)))
