"""Kullback-Leibler divergence from target to draft: sum of target · log(target / draft) (Hinton et al. 2015)."""

from dataclasses import dataclass

from torch import Tensor

from lope.training.losses.law import DraftLaw


@dataclass(frozen=True)
class Kld:
    """Over the tokens that the target names and the drafter keeps. With one named token it is the next-token loss."""

    def __call__(self, draft: DraftLaw) -> Tensor:
        """[n]."""
        target = draft.target.probabilities
        logs = target.clamp(min=1e-30).log() - draft.named_logprobs
        return (target * logs).sum(-1)
