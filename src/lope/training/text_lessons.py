"""Plain text as lessons: the law of each next token is the token itself, so that `kld` is the next-token loss."""

from collections.abc import Iterable

import torch

from lope.models.tokenizer import Tokenizer
from lope.training.distilled_set import Sequence


def text_sequences(texts: Iterable[str], tokenizer: Tokenizer, length: int, kept: int) -> list[Sequence]:
    """Texts cut into sequences of at most `length` tokens; `kept`: width of the laws, to batch beside a set's own."""
    sequences: list[Sequence] = []
    for text in texts:
        ids = torch.tensor(tokenizer.encode(text))
        sequences += [_lesson(len(sequences), part, kept) for part in ids.split(length) if len(part) > 1]
    return sequences


def as_text(sequence: Sequence) -> Sequence:
    """A distilled sequence with the laws of its answer replaced by the tokens that were drawn."""
    answer = sequence.tokens[sequence.prompt :]
    ids, logprobs = _certain(answer, sequence.top_ids.shape[1])
    return Sequence(
        sequence.number, sequence.temperature, sequence.prompt, sequence.tokens, ids, logprobs, sequence.features
    )


def _lesson(number: int, tokens: torch.Tensor, kept: int) -> Sequence:
    ids, logprobs = _certain(tokens[1:], kept)
    return Sequence(number, 1.0, 1, tokens, ids, logprobs, None)


def _certain(tokens: torch.Tensor, kept: int) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.zeros(len(tokens), kept, dtype=torch.int64)
    ids[:, 0] = tokens
    logprobs = torch.full((len(tokens), kept), float("-inf"), dtype=torch.float16)
    logprobs[:, 0] = 0.0
    return ids, logprobs
