"""RSD-S against Kool et al.'s own formula, ancestral sampling and a brute-force beam."""

import math
from collections import Counter
from functools import cache
from itertools import product

import pytest
import torch
from scipy.stats import chi2_contingency

from lope.core.chance import KeyedChance
from lope.core.draft import ROOT, Draft, Draw
from lope.core.errors import SettingError
from lope.core.noise import key
from lope.core.prompt import Path
from lope.core.statistics import chi_square
from lope.shapes.rsd_s import RsdSShape, below

SIZE = 4


@cache
def row(path: Path) -> list[float]:
    """Probabilities after a path: uneven, and different everywhere."""
    weights = [100.0 + key(token, *path) % 997 for token in range(SIZE)]
    return [weight / sum(weights) for weight in weights]


def kool(width: int, depth: int, seed: int) -> Counter[Path]:
    """Algorithm 1 of Kool et al. 2019 as printed: perturb the vocabulary, condition on psi above, keep the top."""
    generator = torch.Generator().manual_seed(seed)
    beam: list[tuple[float, float, Path]] = [(0.0, 0.0, ())]
    nodes: Counter[Path] = Counter()
    for _ in range(depth):
        expanded: list[tuple[float, float, Path]] = []
        for psi, phi, path in beam:
            child = phi + torch.tensor(row(path), dtype=torch.float64).log()
            uniform = torch.rand(SIZE, dtype=torch.float64, generator=generator)
            perturbed = child - (-uniform.log()).log()
            largest = perturbed.max()
            conditioned = -(math.exp(-psi) - (-largest).exp() + (-perturbed).exp()).log()
            expanded += [(float(conditioned[token]), float(child[token]), (*path, token)) for token in range(SIZE)]
        beam = sorted(expanded, reverse=True)[:width]
        nodes.update(path for _, _, path in beam)
    return nodes


def test_beams_have_the_law_of_the_printed_algorithm(grow):
    """Which nodes a tree has, as a set: 1500 trees of each, two-sample chi-square."""
    ours: Counter[frozenset[Path]] = Counter()
    theirs: Counter[frozenset[Path]] = Counter()
    for seed in range(1500):
        draft = grow(RsdSShape(2, 2), row, seed=seed)
        ours[frozenset(draft.words(node) for node in range(len(draft)))] += 1
        theirs[frozenset(kool(2, 2, seed))] += 1
    common = [tree for tree in ours | theirs if ours[tree] + theirs[tree] >= 20]
    rest = [sum(counts.values()) - sum(counts[tree] for tree in common) for counts in (ours, theirs)]
    table = [[ours[tree] for tree in common] + [rest[0]], [theirs[tree] for tree in common] + [rest[1]]]
    assert len(common) > 20
    assert chi2_contingency(table).pvalue > 1e-3


def test_width_one_is_ancestral_sampling(grow):
    counts: Counter[Path] = Counter()
    for seed in range(2000):
        draft = grow(RsdSShape(1, 2), row, seed=seed)
        assert draft.draws == (Draw.ONLY, Draw.ONLY)
        counts[draft.tokens] += 1
    paths = list(product(range(SIZE), repeat=2))
    law = torch.tensor([row(())[first] * row((first,))[second] for first, second in paths])
    assert chi_square(torch.tensor([counts[path] for path in paths]), law)[1] > 1e-3


def test_truncated_nodes_are_kept(grow):
    """Every level holds `width` nodes, though some of the level above have no children."""
    childless = 0
    for seed in range(30):
        draft = grow(RsdSShape(3, 3), row, seed=seed)
        assert Counter(draft.depths) == {1: 3, 2: 3, 3: 3}
        childless += sum(1 for node in range(6) if not draft.children[node + 1])
    assert childless > 0


def likelihood(path: Path) -> float:
    return math.prod(row(path[:at])[token] for at, token in enumerate(path))


def greedy_beam(width: int, depth: int) -> list[Path]:
    beam: list[Path] = [()]
    nodes: list[Path] = []
    for _ in range(depth):
        paths = [(*path, token) for path in beam for token in range(SIZE)]
        beam = sorted(paths, key=lambda path: -sum(math.log(row(path[:at])[path[at]]) for at in range(len(path))))[
            :width
        ]
        nodes += beam
    return nodes


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_at_temperature_zero_it_is_a_beam(grow, width):
    """Logits may be shifted by any number: the softmax counts."""
    draft = grow(RsdSShape(width, 3), lambda path: [math.log(value) + len(path) for value in row(path)], greedy=True)
    assert {draft.words(node) for node in range(len(draft))} == set(greedy_beam(width, 3))
    assert set(draft.draws) == {Draw.POINT}


def test_a_support_smaller_than_the_beam(grow):
    draft = grow(RsdSShape(4, 3), lambda path: [0.0, 1.0, 0.0, 0.0])
    assert draft.tokens == (1, 1, 1)
    assert draft.draws == (Draw.ONLY,) * 3


def test_budget_takes_the_largest_psi(grow):
    """With five nodes of a 3 x 3 beam the second level keeps its two best: a prefix of the full level's order."""
    for seed in range(20):
        full, cut = (grow(RsdSShape(3, 2), row, seed=seed, nodes=nodes) for nodes in (6, 5))
        assert len(cut) == 5
        assert cut.tokens[:3] == full.tokens[:3]


def test_children_below_a_stopped_row(grow):
    draft: Draft = grow(RsdSShape(2, 3), row, last=lambda path: len(path) == 1)
    assert max(draft.depths) == 2
    assert draft.law_of[ROOT + 1] == 0


def test_below_is_the_conditioned_gumbel():
    """-log(exp(-bound) + exp(-gumbel)), where the exponentials can be taken, and without overflow where not."""
    for bound, gumbel in ((0.0, 1.0), (-3.0, 2.0), (5.0, 5.0), (1.0, -4.0)):
        assert below(bound, gumbel) == pytest.approx(-math.log(math.exp(-bound) + math.exp(-gumbel)), rel=1e-14)
    assert below(-2000.0, 5.0) == pytest.approx(-2000.0)
    assert below(5.0, -2000.0) == pytest.approx(-2000.0)
    assert below(0.0, 0.0) < 0.0


def test_a_second_sibling_lies_below_the_first():
    chance = KeyedChance(0, 0, 0)
    draws = [below(-1.0, value) for value in chance.gumbel(500, None, 0).tolist()]
    assert max(draws) < -1.0


@pytest.mark.parametrize("settings", [{"width": 0}, {"depth": 0}, {"width": -3}, {"depth": float("nan")}])
def test_settings_are_checked(settings):
    with pytest.raises(SettingError, match="at least 1"):
        RsdSShape(**settings)
