"""The feature drafter as it learns: EAGLE-3 and its training-time test (Li et al. 2025, arXiv:2503.01840).

    h = fc(features);  in = [input_layernorm(E[token]), hidden_norm(h)];  x = h + attention(in)
    x = x + mlp(post_attention_layernorm(x));  logits = lm_head(norm(x));  the next step's h is x

Step 0 at root i reads the target's features of item i and the token of item i + 1, and guesses item i + 2. Step j reads
the x of the step before instead of features, and the token of item i + 1 + j: errors of the drafter's own features are
seen in training. It attends to the step-0 rows of items <= i and to the steps before it below the same root.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lope.models.lean.config import DecoderConfig
from lope.training.batches import Batch
from lope.training.eagle_layer import EagleContext, EagleLayer
from lope.training.losses.law import Loss, TargetLaw, columns
from lope.training.packed_attention import PackedRotary
from lope.training.pupil import Lesson, refuse_other_sizes

# B rows, T places, R roots of a row, S steps, d hidden size, L features, K kept tokens, V tokens of the target.

# what a step weighs beside the one before it, as in EAGLE-3's own code: it is reached less often
DECAY = 0.8
# hidden states of the target that it reads
FEATURES = 3
_SMALL = 0.02


class EagleNet(nn.Module):
    """Names of parameters are those of the drafter folder; only `fc` is another here (see `begin`).

    embedding: the target's own [V, d], neither learned nor written. kept: int64 [K]. features: L.
    """

    embedding: Tensor
    kept: Tensor
    column: Tensor

    def __init__(self, config: DecoderConfig, embedding: Tensor, kept: Tensor, features: int = FEATURES) -> None:
        super().__init__()
        width = config.hidden_size
        self.config = config
        self.register_buffer("embedding", embedding, persistent=False)
        self.register_buffer("kept", kept, persistent=False)
        self.register_buffer("column", columns(kept, len(embedding)), persistent=False)
        # a parameter that is not learned: checkpoints hold parameters, and `fc` means nothing without it
        self.feature_size = nn.Parameter(torch.ones(features * width), requires_grad=False)
        self.fc = nn.Linear(features * width, width, bias=False)
        self.layers = nn.ModuleList([EagleLayer(config)])
        self.norm = nn.RMSNorm(width, eps=config.norm_eps)
        self.lm_head = nn.Linear(width, len(kept), bias=False)

    @property
    def layer(self) -> "EagleLayer":
        """The one layer."""
        layer = self.layers[0]
        assert isinstance(layer, EagleLayer)
        return layer

    @torch.no_grad()
    def begin(self, features: Tensor, *, head: Tensor | None = None, norm: Tensor | None = None) -> None:
        """Set the parameters that a new drafter begins with, once, before anything is learned.

        features [..., L·d]: some thousand rows of the target's. head [K, d], norm [d]: the target's own head at the
        kept tokens and its final norm, where they can be had.

        Columns of features differ a hundredfold in size, which Adam, whose steps know nothing of inputs, takes for
        different learning rates: `fc` learns on features over their sizes (medians: the first item of a text is a
        hundred times larger than the rest), and `tensors` puts the sizes back into it. `fc` begins as the last of the
        features with a little of the others: neighbouring hidden states are alike. The head begins as the target's, so
        that like words are alike from the start; the norm as the target's too, but so much smaller that logits begin at
        about unit size: what the last feature says of the wrong item must not be a confident guess, which costs the
        first steps. What the layer adds begins small: x is near h, and chains are stable.
        """
        width = self.config.hidden_size
        rows = features.flatten(0, -2).float()
        self.feature_size.copy_(rows.abs().median(0).values.clamp(min=1e-3))
        nn.init.normal_(self.fc.weight, std=_SMALL * width**-0.5)
        self.fc.weight[:, -width:] += torch.eye(width)
        for small in (self.layer.self_attn.o_proj, self.layer.mlp.down_proj):
            nn.init.normal_(small.weight, std=_SMALL)
        if head is None:
            nn.init.normal_(self.lm_head.weight, std=width**-0.5)
        else:
            self.lm_head.weight.copy_(head)
        own = torch.ones(width) if norm is None else norm.float() / norm.float().abs().mean()
        self.norm.weight.copy_(own / self.lm_head.weight.square().sum(-1).mean().sqrt())

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from a drafter folder's tensors; after `begin`, which knows the sizes of features."""
        assert torch.equal(tensors["kept"], self.kept)
        for name, parameter in self._learned():
            parameter.copy_(tensors[name] * self.feature_size if name == "fc.weight" else tensors[name])

    def tensors(self) -> dict[str, Tensor]:
        """As the drafter folder names them."""
        own = {name: parameter.detach() for name, parameter in self._learned()}
        return {"kept": self.kept, **own, "fc.weight": own["fc.weight"] / self.feature_size.detach()}

    def _learned(self) -> list[tuple[str, nn.Parameter]]:
        return [(name, parameter) for name, parameter in self.named_parameters() if parameter.requires_grad]

    def forward(
        self, features: Tensor, tokens: Tensor, document: Tensor, position: Tensor, roots: Tensor, steps: int
    ) -> list[Tensor]:
        """x [B, R, d] of each step below the roots.

        features [B, T, L·d]; tokens, document, position int64 [B, T]; roots int64 [B, R] places of a row. Where a
        step's token is beyond the root's document, x means nothing.
        """
        layer = self.layer
        hidden = self.fc(features / self.feature_size)
        inputs = layer.inputs(self._embedded(tokens.roll(-1, 1)), hidden)
        rows = layer.self_attn.keys_values(inputs, PackedRotary(self.config, position))
        context = EagleContext(*rows, document=document, roots=roots)
        x, inputs = _rows(hidden, roots), _rows(inputs, roots)
        depth = position.gather(1, roots)
        states: list[Tensor] = []
        for step in range(steps):
            rotary = PackedRotary(self.config, depth + step)
            if step:
                named = tokens.gather(1, (roots + 1 + step).clamp(max=tokens.shape[1] - 1))
                inputs = layer.inputs(self._embedded(named), x)
                context.extend(*layer.self_attn.keys_values(inputs, rotary))
            x = layer(x, inputs, rotary, context)
            states.append(x)
        return states

    def _embedded(self, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, self.embedding).float()  # the table may be in the target's own dtype

    def logits(self, x: Tensor) -> Tensor:
        """[n, K] of x [n, d]."""
        return self.lm_head(self.norm(x))  # type: ignore[no-any-return]


class EaglePupil:
    """The net at its lessons. steps: how many tokens in a row it learns to draft."""

    kind = "eagle"
    needs_features = True

    def __init__(self, net: EagleNet, *, steps: int = 3) -> None:
        self.module = net
        self.config = net.config
        self._steps = steps

    def losses(self, batch: Batch, loss: Loss) -> Lesson:
        """The mean over steps, step j weighing 0.8^j, of the mean over places. A step without places weighs nothing."""
        assert batch.features is not None
        net = self.module
        roots, judged = _roots(batch, self._steps)
        states = net(batch.features, batch.tokens, batch.document, batch.position, roots, self._steps)
        total, weights = states[0].new_zeros(()), 0.0
        accepted, places = torch.zeros(self._steps), torch.zeros(self._steps)
        for step, (x, here) in enumerate(zip(states, judged, strict=True)):
            row, chain = here.nonzero(as_tuple=True)
            if not len(row):
                continue
            place = roots[row, chain] + 1 + step
            law = TargetLaw.of(batch.top_ids[row, place], batch.top_logprobs[row, place], net.column)
            # the head is by far the widest matrix: it runs only where its logits are judged
            report = loss(net.logits(x[row, chain]), law)
            total = total + DECAY**step * report.loss
            weights += DECAY**step
            accepted[step], places[step] = report.acceptance.sum(), len(row)
        return Lesson(total / max(weights, 1.0), accepted, places)

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from a drafter folder's tensors. Raises UsageError where sizes differ."""
        refuse_other_sizes(self.tensors(), tensors)
        self.module.restore(tensors)

    def tensors(self) -> dict[str, Tensor]:
        """As the drafter folder names them."""
        return self.module.tensors()


def _rows(x: Tensor, roots: Tensor) -> Tensor:
    """[B, R, c] of x [B, T, c]."""
    first = torch.arange(len(x), device=x.device)[:, None] * x.shape[1]
    return x.flatten(0, 1).index_select(0, (roots + first).flatten()).view(*roots.shape, -1)


def _roots(batch: Batch, steps: int) -> tuple[Tensor, Tensor]:
    """(places int64 [B, R] of roots with something to learn at some step, bool [S, B, R]: at which).

    Step j below root i is judged where place i + 1 + j is in the root's document and its law is known. Rows have
    different numbers of such roots; they are filled up with places that are never judged.
    """
    judged = torch.zeros(steps, *batch.tokens.shape, dtype=torch.bool, device=batch.tokens.device)
    for step in range(min(steps, batch.tokens.shape[1] - 1)):
        ahead = step + 1
        same = batch.document[:, ahead:] == batch.document[:, :-ahead]
        judged[step, :, :-ahead] = same & batch.answer[:, ahead:]
    useful = judged.any(0)
    count = max(1, int(useful.sum(1).max()))
    roots = useful.logical_not().to(torch.uint8).argsort(dim=1, stable=True)[:, :count]
    return roots, judged.gather(2, roots.expand(steps, -1, -1))
