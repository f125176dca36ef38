"""RSD-S of Jeon et al. 2024 (arXiv:2402.14160): stochastic beam search, Kool et al. 2019 (arXiv:1903.06059), alg. 1.

Stochastic beam search draws sequences without replacement: it keeps those with the largest perturbed log-probability
psi. Among the children of one node decreasing psi is the order of a draw without replacement, and whether a child
enters the beam depends on values of psi, not on which token it is: so the recursive rule verifies the tree exactly.
"""

import math
from dataclasses import dataclass

import torch

from lope.core import checks
from lope.core.budget import Budget
from lope.core.draft import ROOT, Draft, Draw
from lope.core.prompt import Path
from lope.core.protocols import Chance, Laws
from lope.core.rows import Rows
from lope.shapes.levels import LevelGrowth


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

    phi: the log-probability of the path to a node. psi: phi + Gumbel, conditioned on the parent's psi being the
    largest among its descendants'. The root has phi = psi = 0.
    """

    def __init__(self, width: int, chance: Chance | None, position: int) -> None:
        self._width = width
        self._chance = chance
        self._position = position
        self._scores = {ROOT: (0.0, 0.0)}

    def children(self, laws: Laws, tree: Draft, depth: int, room: int) -> list[Path]:
        """The next beam, each row's children by decreasing psi."""
        width = min(self._width, room)
        phi = [self._scores[node][0] for node in laws.nodes]
        psi = [self._scores[node][1] for node in laws.nodes]
        beam: list[tuple[float, float, int, int]] = []  # psi, phi, row, token
        for row, candidates in enumerate(self._candidates(laws.rows, phi, width, self._position + depth - 1)):
            largest = candidates[0][0] if candidates else 0.0
            for perturbed, child, token in candidates:
                score = child if self._chance is None else conditioned(psi[row], largest, perturbed)
                beam.append((score, child, row, token))
        beam.sort(key=lambda entry: -entry[0])
        broods: list[list[tuple[float, float, int, int]]] = [[] for _ in laws.nodes]
        for entry in beam[:width]:
            broods[entry[2]].append(entry)
        flat = [entry for brood in broods for entry in brood]
        self._scores = {len(tree) + number: (entry[1], entry[0]) for number, entry in enumerate(flat)}
        return [tuple(entry[3] for entry in brood) for brood in broods]

    def _candidates(
        self, rows: Rows, phi: list[float], width: int, position: int
    ) -> list[list[tuple[float, float, int]]]:
        """For each row its `width` largest G = phi(child) + Gumbel, descending: (G, phi(child), token).

        psi grows with G among siblings, so that the beam's children are among these.
        """
        log_probability = (
            _log_probability(rows) + torch.tensor(phi, dtype=torch.float64, device=rows.values.device)[:, None]
        )
        perturbed = log_probability
        if self._chance is not None:
            noise = [
                self._chance.gumbel(rows.values.shape[1], None if rows.ids is None else rows.held(row), position)
                for row in range(len(rows))
            ]
            perturbed = log_probability + torch.stack(noise).to(log_probability.device)
        top, columns = torch.topk(perturbed, min(width, perturbed.shape[1]), dim=-1)
        tokens = columns if rows.ids is None else rows.ids.expand_as(rows.values).gather(-1, columns)
        found = torch.stack((top, log_probability.gather(-1, columns), tokens.to(torch.float64)), dim=-1).tolist()
        return [[(high, low, int(token)) for high, low, token in row if high > -math.inf] for row in found]


def _log_probability(rows: Rows) -> torch.Tensor:
    """[r, C] in float64: of probabilities their logarithm, of logits the log-softmax."""
    if rows.rest == 0.0:
        return rows.values.to(torch.float64).log()
    total = torch.logsumexp(rows.values, dim=-1) if rows.total is None else rows.total
    return rows.values.to(torch.float64) - total.to(torch.float64)[:, None]


def conditioned(bound: float, largest: float, perturbed: float) -> float:
    """psi = -log(exp(-bound) - exp(-largest) + exp(-perturbed)): a Gumbel given that the largest is `bound`.

    The stable form of Kool et al. 2019, appendix B.3, with T = bound, Z = largest, G = perturbed:
    v = T - G + log(1 - exp(G - Z)), psi = T - max(0, v) - log1p(exp(-|v|)).
    """
    if perturbed >= largest:
        return bound
    shifted = bound - perturbed + math.log(-math.expm1(perturbed - largest))
    return bound - max(0.0, shifted) - math.log1p(math.exp(-abs(shifted)))
