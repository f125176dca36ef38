"""VocabTrim (Goel, Agrawal, Gagrani et al. 2025, arXiv:2506.22694): which tokens a drafter's head keeps.

Counts over what the target says serve best, over what a drafter says next, over raw text least. Tokens that end a turn
or that the chat template writes are kept whatever their count.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from lope.core.errors import SettingError, UsageError
from lope.models.loaded import LoadedModel
from lope.training.shard import Sequence, Text

_MARK = "@@lope@@"


def count_answers(sequences: Iterable[Sequence | Text], vocab_size: int) -> Tensor:
    """int64 [V]: how often each token stands in an answer."""
    counts = torch.zeros(vocab_size, dtype=torch.int64)
    for sequence in sequences:
        counts += torch.bincount(sequence.tokens[sequence.prompt :], minlength=vocab_size)
    return counts


def count_text(texts: Iterable[str], model: LoadedModel) -> Tensor:
    """int64 [V]: how often each token stands in raw text."""
    counts = torch.zeros(model.backend.vocab_size, dtype=torch.int64)
    for text in texts:
        ids = torch.tensor(model.tokenizer.encode(text), dtype=torch.int64)
        counts += torch.bincount(ids, minlength=len(counts))
    return counts


def always_kept(model: LoadedModel) -> frozenset[int]:
    """Tokens that end an answer, and those that the chat template writes around one."""
    written: tuple[int, ...] = ()
    if model.template is not None:
        turns = [{"role": "user", "content": _MARK}, {"role": "assistant", "content": _MARK}]
        text = model.template.render(turns).replace(_MARK, "\n")
        written = tuple(t for t in model.tokenizer.encode(text) if t in model.tokenizer.special_ids)
    return model.stop_tokens | frozenset(written)


def kept_tokens(counts: Tensor, size: int, always: frozenset[int]) -> Tensor:
    """int64 [size] ascending: `always`, then the most frequent ones; ties go to the lower id.

    Raises SettingError for a size beyond the vocabulary, UsageError where nothing was counted.
    """
    if not 1 <= size <= len(counts):
        raise SettingError(
            f"the vocabulary to keep must be between 1 and the target's {len(counts)} tokens, not {size}"
        )
    if len(always) > size:
        raise SettingError(f"{len(always)} tokens are always kept: the vocabulary cannot be trimmed to {size}")
    if not int(counts.sum()):
        raise UsageError("nothing was counted: there is no text to choose the vocabulary by")
    ranked = counts.clone()
    ranked[list(always)] = int(counts.max()) + 1
    return torch.sort(torch.argsort(ranked, descending=True, stable=True)[:size]).values


def coverage(counts: Tensor, kept: Tensor) -> float:
    """The share of counted tokens that are kept: an upper bound on acceptance, q(V_trim)."""
    return float(counts[kept].sum() / counts.sum().clamp(min=1))
