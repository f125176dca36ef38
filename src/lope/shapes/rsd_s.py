"""RSD-S of Jeon et al. 2024 (arXiv:2402.14160): stochastic beam search, Kool et al. 2019 (arXiv:1903.06059), alg. 1.

Stochastic beam search draws sequences without replacement: it keeps those with the largest perturbed log-probability
psi. Among the children of one node decreasing psi is the order of a draw without replacement, and whether a child
enters the beam depends on values of psi, not on which token it is: so the recursive rule verifies the tree exactly.
"""

import math
from collections import Counter
from dataclasses import dataclass

import torch

from lope.core import checks
from lope.core.budget import Budget
from lope.core.draft import ROOT, Draft, Draw
from lope.core.prompt import Path
from lope.core.protocols import Chance, Laws
from lope.core.rows import Rows
from lope.shapes.levels import LevelGrowth

Candidate = tuple[float, float, int]  # psi, phi, token


@dataclass(frozen=True)
class RsdSShape:
    """A beam of `width` nodes for `depth` levels; the tree keeps all beam nodes of all levels, truncated ones too.

    At temperature 0 an ordinary beam: the `width` best cumulative log-probabilities of each level.
    """

    width: int = 4
    depth: int = 4

    def __post_init__(self) -> None:
        checks.at_least("width", self.width, 1)
        checks.at_least("depth", self.depth, 1)

    def draws(self, greedy: bool) -> frozenset[Draw]:
        """Siblings without replacement; single children where only one entered the beam."""
        if greedy:
            return frozenset({Draw.POINT})
        return frozenset({Draw.ONLY} | ({Draw.WITHOUT_REPLACEMENT} if self.width > 1 else set()))

    def start(self, budget: Budget, chance: Chance, greedy: bool, position: int) -> LevelGrowth:
        """A beam that has only its root."""
        spread = BeamSpread(self.width, None if greedy else chance, position)
        return LevelGrowth(budget, self.depth, Draw.POINT if greedy else Draw.WITHOUT_REPLACEMENT, spread)


class BeamSpread:
    """The `width` best children of a whole level, by psi, or by phi at temperature 0 (no chance).

    phi: the log-probability of the path to a node. psi: phi + Gumbel, given that a node's largest descendant has the
    node's own psi. The root has phi = psi = 0.
    """

    def __init__(self, width: int, chance: Chance | None, position: int) -> None:
        self._width = width
        self._chance = chance
        self._position = position
        self._scores = {ROOT: (0.0, 0.0)}

    def children(self, laws: Laws, tree: Draft, depth: int, room: int) -> list[Path]:
        """The next beam, each row's children by decreasing psi."""
        width = min(self._width, room)
        above = [self._scores[node] for node in laws.nodes]
        if self._chance is None:
            broods = _best(laws.rows, above, width)
        else:
            broods = _drawn(laws.rows, above, width, self._chance, self._position + depth - 1)
        ranked = sorted(((psi, row) for row, brood in enumerate(broods) for psi, _, _ in brood), reverse=True)
        entered = Counter(row for _, row in ranked[:width])
        kept = [brood[: entered[row]] for row, brood in enumerate(broods)]
        scores = [(psi, phi) for brood in kept for psi, phi, _ in brood]
        self._scores = {len(tree) + number: pair for number, pair in enumerate(scores)}
        return [tuple(token for _, _, token in brood) for brood in kept]


def _drawn(
    laws: Rows, above: list[tuple[float, float]], width: int, chance: Chance, position: int
) -> list[list[Candidate]]:
    """For each row its `width` children of largest psi, descending.

    Kool et al. perturb the whole vocabulary and condition the maximum to be the parent's psi: exp(-psi) =
    exp(-T) - exp(-Z) + exp(-G). The same law from the top down (Maddison et al. 2014, arXiv:1411.0030): the tokens are
    an ordered draw without replacement; the first has the parent's psi, and each next one a Gumbel around the
    log-mass that is left, given that it lies below the one before. A few numbers instead of one for each token.
    """
    weights = laws.values.cpu()
    ids = None if laws.ids is None else laws.ids.cpu().expand_as(weights)
    totals = weights.sum(dim=-1, dtype=torch.float64).tolist()
    held = [None if ids is None else ids[row] for row in range(len(above))]
    columns = [chance.order(weights[row], held[row], width, position) for row in range(len(above))]
    tokens = [drawn if names is None else names[drawn].tolist() for drawn, names in zip(columns, held, strict=True)]
    everyone = torch.tensor([token for row in tokens for token in row])
    noise = iter(chance.gumbel(len(everyone), everyone, position).tolist())
    broods: list[list[Candidate]] = []
    for row, (psi, phi) in enumerate(above):
        left = totals[row]
        brood: list[Candidate] = []
        for token, mass in zip(tokens[row], weights[row, columns[row]].tolist(), strict=True):
            gumbel = next(noise)
            if brood:
                psi = below(psi, phi + math.log(max(left, 1e-300)) + gumbel)
            brood.append((psi, phi + math.log(mass), token))
            left -= mass
        broods.append(brood)
    return broods


def below(bound: float, gumbel: float) -> float:
    """A Gumbel given that it is less than `bound`: -log(exp(-bound) + exp(-gumbel)), without overflow."""
    low, high = min(bound, gumbel), max(bound, gumbel)
    return low - math.log1p(math.exp(low - high))


def _best(logits: Rows, above: list[tuple[float, float]], width: int) -> list[list[Candidate]]:
    """For each row its `width` best children, descending; psi = phi, under the softmax at temperature 1."""
    total = torch.logsumexp(logits.values, dim=-1) if logits.total is None else logits.total
    values, columns = torch.topk(logits.values, min(width, logits.values.shape[1]), dim=-1)
    tokens = columns if logits.ids is None else logits.ids.expand_as(logits.values).gather(-1, columns)
    found = torch.stack(((values - total[:, None]).to(torch.float64), tokens.to(torch.float64)), dim=-1).tolist()
    return [
        [(phi + value, phi + value, int(token)) for value, token in row if value > -math.inf]
        for row, (_, phi) in zip(found, above, strict=True)
    ]
