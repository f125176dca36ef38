"""What the target said at a place, in the drafter's columns; and how a drafter's logits are judged against it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor


def columns(kept: Tensor, vocab_size: int) -> Tensor:
    """int64 [V]: for each token its column among the kept ones [K], or -1."""
    column = torch.full((vocab_size,), -1, dtype=torch.int64)
    column[kept] = torch.arange(len(kept))
    return column


@dataclass(frozen=True, eq=False)
class TargetLaw:
    """The target's k most probable tokens at n places.

    ids:           int64 [n, k] columns of the drafter's kept vocabulary, -1 where the token is not kept.
    probabilities: float32 [n, k]; 0 where the token is not kept. They sum to less than 1: what the drafter cannot say,
        and what lies beyond the k largest, is left out.
    """

    ids: Tensor
    probabilities: Tensor

    @classmethod
    def of(cls, tokens: Tensor, logprobs: Tensor, column: Tensor) -> "TargetLaw":
        """tokens int64 [n, k] of the target, their logprobs [n, k]; column int64 [V]: token -> column, or -1."""
        ids = column[tokens]
        return cls(ids, logprobs.float().exp().masked_fill(ids < 0, 0.0))

    @cached_property
    def columns(self) -> Tensor:
        """`ids` with -1 replaced by 0, to gather with."""
        return self.ids.clamp(min=0)


@dataclass(frozen=True, eq=False)
class DraftLaw:
    """The drafter's law beside the target's. logprobs: float32 [n, K], differentiable."""

    logprobs: Tensor
    target: TargetLaw

    @cached_property
    def named_logprobs(self) -> Tensor:
        """[n, k]: of the tokens that the target names; meaningless where they are not kept."""
        return self.logprobs.gather(-1, self.target.columns)

    @cached_property
    def named(self) -> Tensor:
        """[n, k]: probabilities of the tokens that the target names; 0 where they are not kept."""
        return self.named_logprobs.exp().masked_fill(self.target.ids < 0, 0.0)

    @cached_property
    def acceptance(self) -> Tensor:
        """[n]: sum of min(target, draft), the probability that a drafted token is accepted (Leviathan et al. 2023)."""
        return torch.minimum(self.named, self.target.probabilities).sum(-1)

    @cached_property
    def entropy(self) -> Tensor:
        """[n]: of the draft."""
        return -(self.logprobs.exp() * self.logprobs).sum(-1)


class Divergence(Protocol):
    """One loss."""

    def __call__(self, draft: DraftLaw) -> Tensor:
        """[n], at least 0 up to a constant; differentiable."""


@dataclass(frozen=True, eq=False)
class LossReport:
    """loss: scalar, differentiable. acceptance: [n], no gradient."""

    loss: Tensor
    acceptance: Tensor


@dataclass(frozen=True)
class Loss:
    """The mean of a divergence over places; in float32 whatever the drafter runs in."""

    divergence: Divergence

    def __call__(self, logits: Tensor, target: TargetLaw) -> LossReport:
        """logits [n, K]."""
        draft = DraftLaw(torch.log_softmax(logits.float(), dim=-1), target)
        return LossReport(self.divergence(draft).mean(), draft.acceptance.detach())
