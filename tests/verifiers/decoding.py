"""Rounds on a table model without an engine: draft, score, verify, commit until enough tokens are there."""

from collections.abc import Callable
from functools import partial

from lope.core.chance import KeyedChance, SharedChance
from lope.core.draft import EMPTY, Draft
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Chance, Job, Verifier
from lope.core.sampling import Sampling
from lope.models.table import TableModel

Propose = Callable[[Path, int, Chance], Draft]
DRAFTING, VERIFYING = 0, 1


def decode(
    target: TableModel, sampling: Sampling, prompt: Path, tokens: int, propose: Propose, verifier: Verifier, seed: int
) -> tuple[Path, int]:
    """(the emitted tokens, the passes that they took)."""
    session = target.open(Prompt(prompt))
    sampler = sampling.begin(Prompt(prompt))
    emitted: Path = ()
    passes = 0
    while len(emitted) < tokens:
        chance: Callable[[int], Chance] = partial(KeyedChance, seed, length=sampler.length)
        if verifier.shares_noise:
            chance = lambda purpose: SharedChance(seed)  # noqa: E731
        draft = propose(prompt + emitted, tokens - len(emitted) - 1, chance(DRAFTING))
        scores = target.score([Job(session, draft, sampler.needs)])[0]
        verdict = verifier.verify(draft, scores, sampler, chance(VERIFYING))
        session.commit(draft, verdict)
        sampler.commit(verdict.tokens)
        emitted += verdict.tokens
        passes += 1
    assert session.ids == prompt + emitted
    return emitted, passes


def nothing(context: Path, depth: int, chance: Chance) -> Draft:
    """No draft at all."""
    return EMPTY
