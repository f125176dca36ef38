"""The MLP of the Llama family as it learns; names of parameters are those of the drafter folder."""

import torch.nn.functional as F
from torch import Tensor, nn

from lope.models.lean.config import DecoderConfig


class GatedMlp(nn.Module):
    """down(silu(gate x) · up x)."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """[..., d] of x [..., d]."""
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))  # type: ignore[no-any-return]
