"""`auto`: which verifier fits a draft, and why a chosen one does not."""

from collections.abc import Set

from lope.core.draft import Draw
from lope.core.errors import UsageError
from lope.core.protocols import Verifier
from lope.verifiers import VERIFIERS


def choose(greedy: bool, draws: Set[Draw]) -> Verifier:
    """The verifier that `auto` takes for a drafter that draws in these ways.

    Points alone go to `coupled`: it accepts as many as any rule could (a point has no chance to share), and the same
    seed then gives the same text with and without drafting. Raises UsageError for a mixture that no rule verifies.
    """
    drawn = draws - {Draw.POINT}
    if greedy:
        name = "greedy"
    elif not drawn:
        name = "coupled"
    elif drawn == {Draw.ONLY}:
        name = "rejection"
    elif Draw.INDEPENDENT not in drawn:
        name = "recursive"
    else:
        name = "recursive_with_replacement"
    verifier: Verifier = VERIFIERS.make(name)
    check_pair(verifier, draws, greedy)
    return verifier


def check_pair(verifier: Verifier, draws: Set[Draw], greedy: bool) -> None:
    """Refuse, before the first token, a verifier that cannot verify these draws exactly.

    Raises UsageError that says what is wrong and which verifiers can.
    """
    if _can(verifier, draws, greedy):
        return
    accepted = verifier.accepts(greedy)
    name = VERIFIERS.spell(verifier)
    if accepted is None:
        trouble = "temperature 0" if greedy else "a temperature above 0 (it takes the best token only)"
    else:
        trouble = f"a draft with {_listed(draws - accepted)} nodes (it verifies {_listed(accepted)})"
    able = [other for other in VERIFIERS if _can(VERIFIERS.make(other), draws, greedy)]
    raise UsageError(f"{name} cannot verify {trouble} without changing the answer; {' or '.join(able)} can")


def _can(verifier: Verifier, draws: Set[Draw], greedy: bool) -> bool:
    accepted = verifier.accepts(greedy)
    return accepted is not None and draws <= accepted


def _listed(draws: Set[Draw]) -> str:
    return ", ".join(sorted(draw.value for draw in draws))
