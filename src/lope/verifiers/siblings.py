"""The test of one parent's candidates against the target, in order, each against what the elder ones left over.

Claim (recursive rejection sampling, Jeon et al. 2024, arXiv:2402.14160): whenever candidate i is reached with residual
r_i, what is emitted from there on has law r_i. It needs only that candidate i was drawn from the law given here, given
its elders. By min(r_i, law_i) + max(0, r_i - law_i) = r_i each test hands the claim down to the next. A `POINT` has the
law that is 1 on itself; it comes after the drawn siblings, because which points are left may depend on what was drawn.
"""

from collections.abc import Callable

from torch import Tensor

from lope.core.draft import Draft, Draw
from lope.core.protocols import Chance
from lope.core.rows import Rows
from lope.verifiers.residual import Residual, dense_law

Next = Callable[[Tensor, int], Tensor]


def examine(
    draft: Draft, node: int, target: Rows, position: int, chance: Chance, next_law: Next
) -> tuple[int | None, int]:
    """(the accepted child of `node` and its token), or (None, a token of the residual).

    next_law(law, token): the law [V] that the next sibling was drawn from, once `token` was drawn from `law`.
    """
    residual = Residual.of(target)
    law: Tensor | None = None
    elder: int | None = None
    for child in draft.children[node + 1]:
        token = draft.tokens[child]
        owed = residual.mass(token)
        if draft.draws[child] is Draw.POINT:
            if chance.accept(owed):
                return child, token
            left = residual.without(token)
        else:
            law = _first_law(draft, node, residual) if law is None or elder is None else next_law(law, elder)
            elder = token
            if chance.accept(owed / float(law[token])):
                return child, token
            left = residual.minus(law)
        if left is not None:
            residual = left
        elif owed > 0.0:  # in exact arithmetic a refusal leaves something: nothing left means that rounding refused
            return child, token
    return None, residual.draw(chance, position)


def _first_law(draft: Draft, node: int, residual: Residual) -> Tensor:
    row = draft.law_of[node + 1]
    assert draft.laws is not None, "a draft with drawn nodes says what they were drawn from"
    assert row >= 0, f"node {node} has drawn children but no law"
    return dense_law(draft.laws, row, residual.weights)
