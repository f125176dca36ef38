"""What the target says of a draft: logits at the root and at every node, and what drafters asked for beside."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from lope.core.prompt import Path
from lope.core.rows import Rows

ALL = 1 << 30


@dataclass(frozen=True)
class Needs:
    """What somebody must know of a pass, per round. `a | b` is what both need.

    layers:         hidden states after these layers: 0 is the embedding, the last one is after the final norm, as in
                    transformers' `hidden_states`. They must not grow between two passes over the same pending items.
    logits:         the k largest logits of the root and of each node, or ALL.
    context_logits: the k largest logits of context items before the root, 0 for none.
    """

    layers: Path = ()
    logits: int = 0
    context_logits: int = 0

    def __or__(self, other: "Needs") -> "Needs":
        return Needs(
            tuple(sorted({*self.layers, *other.layers})),
            max(self.logits, other.logits),
            max(self.context_logits, other.context_logits),
        )


@dataclass(frozen=True, eq=False)
class Scores:
    """The target's answer to one draft of n nodes.

    logits:         [1 + n] rows: the root (the last context item), then the nodes; a copy shares its first's row.
    context:        how many committed items have run since the last commit (at least 1); the root is the last of them.
    features:       layer -> [context + n, d].
    context_logits: [context - 1, k] rows, or None.
    """

    logits: Rows
    context: int
    features: Mapping[int, Tensor] = field(default_factory=dict)
    context_logits: Rows | None = None
