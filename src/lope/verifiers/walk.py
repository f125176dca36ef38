"""The descent that every verifier shares: go down to an accepted child, or emit one token more and stop."""

from collections.abc import Callable

from lope.core.draft import ROOT, Draft
from lope.core.prompt import Path
from lope.core.protocols import Sampler
from lope.core.rows import Rows
from lope.core.scores import Scores
from lope.core.verdict import Verdict

Decide = Callable[[Rows, int, int], tuple[int | None, int]]


def walk(draft: Draft, scores: Scores, sampler: Sampler, decide: Decide) -> Verdict:
    """Walk from the root until `decide` accepts no child. Only the rows that are visited are filtered, one at a time.

    decide(target, node, position) -> (accepted child or None, token): `target` is the target's law after `node`, one
    row of probabilities; `position` is the context position that the token takes.
    """
    node, path, tokens = ROOT, list[int](), list[int]()
    while True:
        target = sampler.filtered(scores.logits.select([node + 1]), [tuple(tokens)])
        child, token = decide(target, node, sampler.length + len(path))
        tokens.append(token)
        if child is None:
            return Verdict(tuple(path), tuple(tokens))
        node = draft.firsts[child]
        path.append(node)


def matching(draft: Draft, node: int, token: int) -> int | None:
    """The eldest child of `node` that carries this token, or None."""
    below: Path = draft.children[node + 1]
    return next((child for child in below if draft.tokens[child] == token), None)
