"""The stand-alone drafter as it learns: a small Llama that reads the target's embedding through a projection and
speaks the tokens it keeps (Goel, Gagrani et al. 2024, arXiv:2403.00858; VocabTrim, Goel et al. 2025, arXiv:2506.22694).
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lope.models.lean.config import DecoderConfig
from lope.training.batches import Batch
from lope.training.gated_mlp import GatedMlp
from lope.training.losses.law import Loss, TargetLaw, columns
from lope.training.packed_attention import PackedRotary, attend, causal_mask
from lope.training.pupil import Lesson, refuse_other_sizes


class StandaloneNet(nn.Module):
    """Names of parameters are those of the drafter folder."""

    embedding: Tensor
    kept: Tensor
    column: Tensor

    def __init__(self, config: DecoderConfig, embedding: Tensor, kept: Tensor) -> None:
        super().__init__()
        self.config = config
        # not learned, not written: the target's own
        self.register_buffer("embedding", embedding.float(), persistent=False)
        self.register_buffer("kept", kept, persistent=False)
        self.register_buffer("column", columns(kept, len(embedding)), persistent=False)
        self.embed_projection = nn.Linear(embedding.shape[1], config.hidden_size, bias=False)
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.num_layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, len(kept), bias=False)
        self._begin(embedding)

    def _begin(self, embedding: Tensor) -> None:
        """Unit-variance input; outputs of blocks small at first, so that depth does not add up (GPT-2's rule)."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                small = name.endswith(("o_proj.weight", "down_proj.weight"))
                std = 0.02 / (2 * self.config.num_layers) ** 0.5 if small else 0.02
                nn.init.normal_(parameter, std=std)
        scale = float(embedding[:: max(1, len(embedding) // 4096)].float().square().mean().sqrt())
        nn.init.normal_(self.embed_projection.weight, std=1.0 / (scale * embedding.shape[1] ** 0.5))
        with torch.no_grad():  # words that are read alike are said alike
            self.lm_head.weight.copy_(0.03 * self.embed_projection(self.embedding[self.kept]))

    def forward(self, tokens: Tensor, document: Tensor, position: Tensor) -> Tensor:
        """Hidden states after the final norm [B, T, d] of packed rows."""
        x = self.embed_projection(F.embedding(tokens, self.embedding))
        rotary, mask = PackedRotary(self.config, position), causal_mask(document)
        for layer in self.layers:
            x = layer(x, rotary, mask)
        return self.norm(x)  # type: ignore[no-any-return]


class _Layer(nn.Module):
    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.norm_eps)
        self.self_attn = _Attention(config)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.norm_eps)
        self.mlp = GatedMlp(config)

    def forward(self, x: Tensor, rotary: PackedRotary, mask: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), rotary, mask)
        return x + self.mlp(self.post_attention_layernorm(x))  # type: ignore[no-any-return]


class _Attention(nn.Module):
    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self._width = config.head_dim
        queries, keys = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, queries, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, keys, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, keys, bias=False)
        self.o_proj = nn.Linear(queries, config.hidden_size, bias=False)

    def forward(self, x: Tensor, rotary: PackedRotary, mask: Tensor) -> Tensor:
        queries, keys, values = (
            projection(x).unflatten(-1, (-1, self._width)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        return self.o_proj(attend(rotary(queries), rotary(keys), values, mask))  # type: ignore[no-any-return]


class StandalonePupil:
    """The net at its lessons."""

    kind = "standalone"
    needs_features = False

    def __init__(self, net: StandaloneNet) -> None:
        self.module = net
        self.config = net.config

    def losses(self, batch: Batch, loss: Loss) -> Lesson:
        """The head runs only where there is something to learn."""
        net = self.module
        hidden = net(batch.tokens, batch.document, batch.position)[batch.answer]
        law = TargetLaw.of(batch.top_ids[batch.answer], batch.top_logprobs[batch.answer], net.column)
        report = loss(net.lm_head(hidden), law)
        return Lesson(report.loss, report.acceptance.sum()[None].cpu(), torch.tensor([float(len(report.acceptance))]))

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from a drafter folder's tensors. Raises UsageError where sizes differ."""
        refuse_other_sizes(self.tensors(), tensors)
        for name, parameter in self.module.named_parameters():
            parameter.copy_(tensors[name])

    def tensors(self) -> dict[str, Tensor]:
        """As the drafter folder names them."""
        own = {name: parameter.detach() for name, parameter in self.module.named_parameters()}
        return {"kept": self.module.kept, **own}
