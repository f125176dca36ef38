"""Small sequences to learn from, without a model."""

import torch

from lope.training.distilled_set import Sequence

VOCABULARY, KEPT_LAWS, WIDTH = 40, 4, 8


def sequence(number: int, prompt: int, answer: int, *, features: bool = False) -> Sequence:
    """Tokens of a fixed pattern that a net can learn: each is the one before it plus one, with a law that says so."""
    tokens = (torch.arange(prompt + answer) + 3 * number) % VOCABULARY
    said = tokens[prompt:]
    ids = (said[:, None] + torch.arange(KEPT_LAWS)) % VOCABULARY
    logprobs = torch.tensor([0.7, 0.2, 0.06, 0.04]).log().to(torch.float16).expand(answer, -1).contiguous()
    states = torch.randn(prompt + answer, WIDTH).to(torch.bfloat16) if features else None
    return Sequence(number, 0.0, prompt, tokens, ids, logprobs, states)
