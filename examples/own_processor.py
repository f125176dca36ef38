"""A logits processor of your own: no token may come twice in a row. It is exact along every path of a draft tree."""

from dataclasses import dataclass

import torch

import lope


@dataclass(frozen=True)
class NoRepeat:
    last: int | None = None

    def begin(self, prompt: lope.Prompt) -> "NoRepeat":
        return NoRepeat(prompt.ids[-1])

    def advance(self, token: int) -> "NoRepeat":
        return NoRepeat(token)

    def apply(self, values: torch.Tensor, ids: torch.Tensor | None) -> torch.Tensor:
        column = torch.tensor([self.last]) if ids is None else (ids == self.last).nonzero().flatten()
        return values.index_fill(0, column, float("-inf"))


engine = lope.load("smollm2")
answer = engine.generate("Say ha ha ha.", max_new_tokens=24, processors=(NoRepeat(),))
assert all(a != b for a, b in zip(answer.tokens, answer.tokens[1:], strict=False))
print(answer.text)
