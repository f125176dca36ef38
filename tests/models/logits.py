"""All rows of logits that a loaded model gives for a text."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lope.core.draft import EMPTY
from lope.core.prompt import Prompt
from lope.core.protocols import Job
from lope.core.scores import ALL, Needs
from lope.models.loaded import LoadedModel


def all_logits(model: LoadedModel, ids: Sequence[int]) -> Tensor:
    """[len(ids), V], float32."""
    target = model.backend.target(False)
    needs = Needs(logits=ALL, context_logits=model.backend.vocab_size)
    [scores] = target.score([Job(target.open(Prompt(tuple(ids))), EMPTY, needs)])
    held = scores.context_logits
    assert held is not None
    assert held.ids is not None
    before = torch.empty(held.values.shape[0], held.size).scatter_(1, held.ids, held.values)
    return torch.cat([before, scores.logits.values])
